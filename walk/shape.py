"""Counts of the sources: classes, functions, lines, and what works around types."""

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
"""Without the docstring, comments and empty lines."""
FILE_LINES = 400
Function = ast.FunctionDef | ast.AsyncFunctionDef


def chains(sources: Iterable[Source]) -> list[list[str]]:
    """Return for each class its longest chain of classes of ours, itself first, as `module:Class`; longest first.

    Interfaces, which derive from Protocol, and errors are left out.
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
    """Return the bases of each class of a source; interfaces are left out."""
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
    """Return the name of a base: of `Sessions[River]` it is `Sessions`."""
    return ast.unparse(base.value if isinstance(base, ast.Subscript) else base)


def named(sources: Iterable[Source], names: Iterable[str]) -> dict[str, list[str]]:
    """Return for each of these names the places of the classes and types that have it."""
    places: dict[str, list[str]] = {name: [] for name in names}
    for source in sources:
        for name, line in _types(source):
            if name in places:
                places[name].append(f"{source.path}:{line}")
    return places


def _types(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the names of all classes, and of what a module assigns, with their lines."""
    yield from ((node.name, node.lineno) for node in _classes(source))
    for node in source.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from ((target.id, node.lineno) for target in targets if isinstance(target, ast.Name))


def _classes(source: Source) -> Iterator[ast.ClassDef]:
    yield from (node for node in source.nodes if isinstance(node, ast.ClassDef))


def driver_casts(source: Source) -> Iterator[str]:
    """Yield where something is cast to a Driver."""
    for node in source.nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "cast" and "Driver" in ast.unparse(node.args[0]):
            yield f"{source.path}:{node.lineno}"


def raised_hooks(source: Source) -> Iterator[str]:
    """Yield where NotImplementedError is raised."""
    for node in source.nodes:
        if isinstance(node, ast.Raise) and node.exc is not None and "NotImplementedError" in ast.unparse(node.exc):
            yield f"{source.path}:{node.lineno}"


def sniffed_sessions(source: Source) -> Iterator[str]:
    """Yield where a session is asked what it has or is: what a name tells is all that this can see."""
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
    """Count the lines of a function, without its docstring, comments and empty lines."""
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
    """Return the files with more than 400 lines."""
    return [f"{source.path} ({len(source.lines)})" for source in sources if len(source.lines) > FILE_LINES]
