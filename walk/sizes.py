"""Reports how large modules are, and finds names that several of them have."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from statistics import median

from .circles import graph
from .sources import Source

__all__ = ["repeated_classes", "repeated_modules", "rooms", "sizes", "splinters"]

SMALL_LINES = 100
FAMILIES = frozenset({"reactivestreams", "river", "rsocket"})
"""Folders of protocols, which have the same skeleton."""
MIRROR = "sync"
"""The folder that has the names of the asyncio API."""


def sizes(sources: Iterable[Source]) -> dict[str, int]:
    """Return numbers that describe the sizes of the Python modules. They are reported, and have no limit."""
    sources = list(sources)
    lines = sorted(len(source.lines) for source in sources if source.is_python)
    return {
        "modules in src": len(lines),
        "lines in src": sum(lines),
        "lines of the median module": int(median(lines)),
        "lines of the largest module": lines[-1],
        f"modules below {SMALL_LINES} lines": sum(size < SMALL_LINES for size in lines),
        "of them imported by one neighbor alone": len(splinters(sources)),
    }


def rooms(sources: Iterable[Source]) -> dict[str, tuple[int, int]]:
    """Return how many modules and lines each folder below the package has."""
    found: dict[str, list[int]] = defaultdict(list)
    for source in sources:
        if source.is_python:
            folder, _, rest = source.path.partition("/")
            found[folder if rest else "."].append(len(source.lines))
    return {room: (len(lines), sum(lines)) for room, lines in sorted(found.items())}


def splinters(sources: Iterable[Source]) -> list[str]:
    """Return the small modules that only one module of the same folder imports: they may be a part of it."""
    sources = list(sources)
    importers: dict[str, set[str]] = defaultdict(set)
    for module, targets in graph(sources).items():
        for target in targets:
            importers[target].add(module)
    return [
        source.path
        for source in sources
        if source.is_python
        and len(source.lines) < SMALL_LINES
        and not source.path.endswith("__init__.py")
        and [_folder(module) for module in importers[source.module]] == [_folder(source.module)]
    ]


def _folder(module: str) -> str:
    return module.rpartition(".")[0]


def repeated_modules(sources: Iterable[Source]) -> list[str]:
    """Return the names that several modules have, apart from those of protocols and of the mirrored API."""
    places = [source.module for source in _named(sources) if source.path.rpartition("/")[2] != "__init__.py"]
    return _repeated((module.rpartition(".")[2], module) for module in places)


def repeated_classes(sources: Iterable[Source]) -> list[str]:
    """Return the names that several classes have, apart from those of protocols and of the mirrored API."""
    return _repeated(
        (node.name, source.module)
        for source in _named(sources)
        for node in source.tree.body
        if isinstance(node, ast.ClassDef)
    )


def _named(sources: Iterable[Source]) -> Iterator[Source]:
    return (source for source in sources if source.is_python and MIRROR not in source.path.split("/"))


def _repeated(named: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names with several modules. All modules of protocols count as one."""
    places = {(name, "protocols" if FAMILIES & set(module.split(".")) else module) for name, module in named}
    counts = Counter(name for name, _ in places)
    return [f"{name} ({count})" for name, count in sorted(counts.items()) if count > 1]
