"""Finds import circles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .sources import Source

__all__ = ["circles", "graph"]


def graph(sources: Iterable[Source]) -> dict[str, set[str]]:
    """Return the modules that each module imports, including imports in functions and for type checkers."""
    sources = list(sources)
    modules = {source.module for source in sources}
    edges: dict[str, set[str]] = {module: set() for module in modules}
    for source in sources:
        targets = {_target(module, name, modules) for module, name in source.imports()}
        edges[source.module] |= (targets & modules) - {source.module}
    return edges


def _target(module: str, name: str, modules: set[str]) -> str:
    """Return the module that `from module import name` needs: a submodule, or `module` itself."""
    submodule = f"{module}.{name}".strip(".")
    return submodule if submodule in modules else module


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that all reach each other, the largest first."""
    reached = {module: _reached(module, edges) for module in edges}
    groups = {frozenset({a} | {b for b in reached[a] if a in reached[b]}) for a in edges}
    found = [sorted(group) for group in groups if len(group) > 1]
    return sorted(found, key=lambda group: (-len(group), group))


def _reached(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    """Return all modules that `start` imports, directly or not."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = edges[waiting.pop()] - found
        found |= fresh
        waiting.extend(fresh)
    return found
