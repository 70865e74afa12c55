"""Counts classes, functions, lines, and code that bypasses types."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from .sources import Source

__all__ = [
    "chains",
    "driver_casts",
    "long_files",
    "long_functions",
    "named",
    "raised_hooks",
    "sniffed_sessions",
]

FUNCTION_LINES = 40
"""Maximum lines, without the docstring, comments and empty lines."""
FILE_LINES = 1000
Function = ast.FunctionDef | ast.AsyncFunctionDef


def chains(sources: Iterable[Source]) -> list[list[str]]:
    """Return the longest chain of our base classes for each class, as `module:Class`. The longest chain comes first.

    Each chain starts with the class itself. Interfaces, which derive from Protocol, and errors are omitted.
    """
    bases: dict[str, list[str]] = {}
    for source in sources:
        if source.is_python and source.module != "errors":
            bases |= _bases(source)

    def chain(name: str) -> list[str]:
        longest = max((chain(base) for base in bases[name] if base in bases), key=len, default=[])
        return [name, *longest]

    return sorted(map(chain, bases), key=lambda one: (-len(one), one))


def _bases(source: Source) -> dict[str, list[str]]:
    """Return the bases of each class in a source, without interfaces."""
    places = {
        alias.asname or alias.name: f"{module}:{alias.name}" for module, node in source.froms() for alias in node.names
    }
    found = {}
    for node in _classes(source):
        names = [_name(base) for base in node.bases]
        if "Protocol" not in names:
            found[f"{source.module}:{node.name}"] = [places.get(name, f"{source.module}:{name}") for name in names]
    return found


def _name(base: ast.expr) -> str:
    """Return the name of a base, such as `Sessions` for `Sessions[River]`."""
    return ast.unparse(base.value if isinstance(base, ast.Subscript) else base)


def named(sources: Iterable[Source], names: Iterable[str]) -> dict[str, list[str]]:
    """Return the places of the classes and types with each of these names."""
    places: dict[str, list[str]] = {name: [] for name in names}
    for source in sources:
        for name, line in _types(source):
            if name in places:
                places[name].append(f"{source.path}:{line}")
    return places


def _types(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the names and lines of all classes and module-level assignments."""
    yield from ((node.name, node.lineno) for node in _classes(source))
    for node in source.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from ((target.id, node.lineno) for target in targets if isinstance(target, ast.Name))


def _classes(source: Source) -> Iterator[ast.ClassDef]:
    yield from (node for node in source.nodes if isinstance(node, ast.ClassDef))


def driver_casts(source: Source) -> Iterator[str]:
    """Yield the places of casts to Driver."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "cast" and "Driver" in ast.unparse(node.args[0]):
            yield f"{source.path}:{node.lineno}"


def raised_hooks(source: Source) -> Iterator[str]:
    """Yield the places that raise NotImplementedError."""
    for node in source.nodes:
        if isinstance(node, ast.Raise) and node.exc is not None and "NotImplementedError" in ast.unparse(node.exc):
            yield f"{source.path}:{node.lineno}"


def sniffed_sessions(source: Source) -> Iterator[str]:
    """Yield the places that inspect the type or attributes of a session. Sessions are recognized only by name."""
    for node in source.nodes:
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr", "isinstance")):
            continue
        about = ast.unparse(node.args[0])
        if re.search(r"(^|[._])session$", about):
            yield f"{source.path}:{node.lineno}"


def long_functions(source: Source) -> Iterator[str]:
    """Yield the functions with more than 40 lines of code."""
    for node in source.nodes:
        if isinstance(node, Function) and (lines := _code_lines(node, source)) > FUNCTION_LINES:
            yield f"{source.path}:{node.lineno} {node.name} ({lines})"


def _code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef, source: Source) -> int:
    """Return the number of lines of a function, without its docstring, comments and empty lines."""
    assert node.end_lineno is not None
    skipped = 0
    if ast.get_docstring(node) is not None:
        end = node.body[0].end_lineno
        assert end is not None
        skipped = end - node.body[0].lineno + 1
    lines = source.lines[node.lineno - 1 : node.end_lineno]
    blank = sum(not line.strip() or line.strip().startswith("#") for line in lines)
    return len(lines) - skipped - blank


def long_files(sources: Iterable[Source]) -> list[str]:
    """Return the files with more than 1,000 lines."""
    return [f"{source.path} ({len(source.lines)})" for source in sources if len(source.lines) > FILE_LINES]
