"""Docstrings as Markdown, for the reference that is generated from them.

Weirpool's docstrings use the roles of reStructuredText for references, double backquotes for code, and ``::`` before an
indented block of code. `help()` shows them well; Markdown does not know them.
"""

from __future__ import annotations

import ast
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

from griffe import Extension, Object

PACKAGE = Path(__file__).parents[2] / "src" / "weirpool" / "__init__.py"
ROLE = re.compile(r":(?:class|meth|attr|func|exc|mod|data|obj):`(~?)([\w.]+)`")
NAME = re.compile(r"(?<![`\[:])`([A-Z]\w+(?:\.\w+)?)`(?!`)")
BLOCK = re.compile(r"::\n\n((?:(?:[ \t]+.*)?\n)*[ \t]+.*(?:\n|$))")
SPAN = re.compile(r"``([^`\n]+(?:\n[^`\n]+)?)``")


class Docstrings(Extension):
    """Rewrites each docstring before it is parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value, obj)


@cache
def public() -> frozenset[str]:
    """Return the names in `weirpool.__all__`."""
    tree = ast.parse(PACKAGE.read_text())
    found = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    return frozenset(ast.literal_eval(found))


def markdown(text: str, obj: Object) -> str:
    """Return a docstring as Markdown. References that do not name a module start from `obj`."""
    text = BLOCK.sub(_fenced, text)
    text = NAME.sub(lambda found: _mention(found[1]), text)
    text = ROLE.sub(lambda found: _reference(found[2], bool(found[1]), obj), text)
    return SPAN.sub(r"`\1`", text)


def _fenced(found: re.Match[str]) -> str:
    """Return an indented block of code as a fenced one, as deep as the text before it."""
    indent = re.match(r"[ \t]*", found[1].lstrip("\n"))[0][4:]
    code = textwrap.dedent(found[1]).strip("\n")
    block = textwrap.indent(f"```python\n{code}\n```", indent)
    return f":\n\n{block}\n"


def _mention(name: str) -> str:
    """Return a link to a public name or to a part of it, if it is one."""
    return f"[`{name}`][weirpool.{name}]" if name.partition(".")[0] in public() else f"`{name}`"


def _reference(name: str, short: bool, obj: Object) -> str:
    """Return a link for a role. What the reference does not have is only code."""
    shown = name.rpartition(".")[2] if short else name
    owner = obj if obj.is_class else obj.parent
    if name.startswith("weirpool."):
        target = name
    elif name.partition(".")[0] in public():
        target = f"weirpool.{name}"
    elif owner is not None and name.partition(".")[0] in owner.all_members:
        target = f"{owner.canonical_path}.{name}"
    else:
        target = f"{obj.module.canonical_path}.{name}"
    if re.sub(r"^weirpool\.", "", target).partition(".")[0] in public():
        return f"[`{shown}`][{target}]"
    return f'<autoref identifier="{target}" optional><code>{shown}</code></autoref>'
