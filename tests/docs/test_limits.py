"""The page about limits names each pool of the process."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "weirpool"
PAGE = ROOT / "docs" / "explanation" / "limits.md"
SHARED = {"Shares", "Places"}
"""What clients take up: the module belongs into the table of pools."""
THREADS = {"ThreadPoolExecutor", "Thread", "ProcessPoolExecutor"}
WAITING = {"Semaphore", "BoundedSemaphore"}


def pools(tree: ast.AST) -> set[str]:
    """Return the kinds of pools that a module makes."""
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in called}
    return names & (SHARED | THREADS | WAITING)


def found() -> dict[str, set[str]]:
    """Return the kinds of pools by module."""
    modules = {}
    for path in SOURCES.rglob("*.py"):
        if kinds := pools(ast.parse(path.read_text())):
            modules[".".join(path.relative_to(SOURCES).with_suffix("").parts)] = kinds
    return modules


def named(section: str) -> set[str]:
    """Return the modules that the first or second column of a section's table names."""
    text = PAGE.read_text().split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("|")]
    return {module for row in rows for cell in row for module in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", cell)}


def test_each_pool_that_clients_share_is_in_the_table() -> None:
    shared = {module for module, kinds in found().items() if kinds & SHARED}
    # Links that wait for their first message are counted by the server, and kept by the transports.
    shared = {"transports.places" if module == "aio.limits" else module for module in shared}
    assert shared <= named("Pools")


def test_each_thread_is_in_a_table() -> None:
    threads = {module for module, kinds in found().items() if kinds & (THREADS | WAITING)}
    assert threads <= named("Pools") | named("Threads that no peer takes up")


@pytest.mark.parametrize("section", ["Pools", "Threads that no peer takes up"])
def test_the_tables_name_modules_that_exist(section: str) -> None:
    modules = named(section)
    assert modules
    assert all((SOURCES / Path(*module.split("."))).with_suffix(".py").is_file() for module in modules)


def test_no_pool_is_hidden_behind_another_name() -> None:
    tree = ast.parse("import threading\nfrom x import Shares\nthreading.Thread()\nShares('a', 1)\nopen('a')")
    assert pools(tree) == {"Thread", "Shares"}
