"""Compiled modules check bounds. Those with pointers, which Cython cannot check, are named in memory.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
POINTER = re.compile(r"""\w\*[\s,)"\]]|\bBytes\b|PyBytes_AS_STRING|FromMemory""")
"""A type with an asterisk, or a function that gives a pointer. Multiplications have spaces on both sides."""


def compiled_sources() -> list[Path]:
    """Return the files that Cython reads."""
    declarations = sorted(SOURCE.rglob("*.pxd"))
    return [
        *sorted(SOURCE.rglob("*.pyx")),
        *declarations,
        *(path.with_suffix(".py") for path in declarations if path.with_suffix(".py").exists()),
    ]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def code_of(text: str) -> str:
    """Return a source without its comments."""
    return "\n".join(line.partition("#")[0] for line in text.split("\n"))


def test_modules_with_pointers_are_named() -> None:
    typed = [path for path in compiled_sources() if path.suffix != ".py"]
    found = {module_of(path) for path in typed if POINTER.search(code_of(path.read_text()))}
    page = (ROOT / "docs" / "explanation" / "memory.md").read_text()
    assert sorted(found) == re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)


def test_pointers_are_recognized() -> None:
    for code in ('p="const unsigned char*"', "cdef char* to = x", "f(const int* at, int n)", "Bytes p"):
        assert POINTER.search(code)
    for code in ("a = 3 * b", "def f(*args, **kwargs)", "cdef int at"):
        assert POINTER.search(code) is None


def test_bounds_are_checked() -> None:
    setup = ast.parse((ROOT / "setup.py").read_text())
    assigned = {
        ast.unparse(statement.targets[0]): statement.value
        for statement in setup.body
        if isinstance(statement, ast.Assign)
    }
    assert ast.literal_eval(assigned["DIRECTIVES"])["boundscheck"] is True
    assert [module_of(path) for path in compiled_sources() if "boundscheck" in path.read_text()] == []
