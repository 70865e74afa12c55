"""Every test asserts something, runs on the required builds, and is in a file that is not too long."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.once import ONCE, TWICE, runs_once

TESTS = Path(__file__).parent
ROOT = TESTS.parent
MAX_LINES = 1000
SUFFIXES = {".py", ".pyx", ".pxd"}

STATEMENTS = {"pytest.raises", "pytest.warns", "pytest.fail", "run_state_machine_as_test", "until"}
"""Calls that count as assertions: state machines assert themselves, and `until` fails after the time limit."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


@cache
def helper_files(path: Path) -> frozenset[Path]:
    """Return the files in tests/ from which a file imports, with itself and the conftest.py files above it."""
    found = {path, *(folder / "conftest.py" for folder in path.parents if folder.is_relative_to(TESTS))}
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if node.level else ROOT
            module = base.joinpath(*(node.module or "").split("."))
            found |= {module.with_suffix(".py"), *((module / alias.name).with_suffix(".py") for alias in node.names)}
    return frozenset(file for file in found if file == path or (file.is_relative_to(TESTS) and file.exists()))


@cache
def functions(path: Path) -> dict[str, list[Function]]:
    """Return the functions and methods of a file by name."""
    found: dict[str, list[Function]] = {}
    for node in ast.walk(parsed(path)):
        if isinstance(node, Function):
            found.setdefault(node.name, []).append(node)
    return found


def names_used(function: Function) -> set[str]:
    """Return the names of the functions that a function calls or passes on, and of its fixtures."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    passed = {argument.id for call in calls for argument in call.args if isinstance(argument, ast.Name)}
    called = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    called |= {call.func.attr for call in calls if isinstance(call.func, ast.Attribute)}
    fixtures = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    return called | passed | fixtures


def states(function: Function) -> bool:
    """Return True if a function itself asserts something."""
    calls = {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    return not calls.isdisjoint(STATEMENTS) or any(isinstance(node, ast.Assert) for node in ast.walk(function))


def asserts(function: Function, path: Path, seen: set[tuple[Path, str]] | None = None) -> bool:
    """Return True if a function of a file asserts something, directly or in a helper that it calls.

    Helpers are found by name alone, in the file and in those that it imports from.
    """
    seen = set() if seen is None else seen
    if states(function):
        return True
    for name in names_used(function):
        for file in helper_files(path):
            if (file, name) in seen:
                continue
            seen.add((file, name))
            if any(asserts(helper, file, seen) for helper in functions(file).get(name, [])):
                return True
    return False


def unasserted(path: Path) -> Iterator[str]:
    """Yield the names of a file's tests without assertions."""
    for name, found in functions(path).items():
        if name.startswith("test_"):
            yield from (name for function in found if not asserts(function, path))


def test_every_test_asserts_something() -> None:
    found = {path.relative_to(TESTS).as_posix(): list(unasserted(path)) for path in sorted(TESTS.rglob("test_*.py"))}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def test_it():\n    run()", ["test_it"]),
        ("def test_it():\n    assert run()", []),
        ("def test_it():\n    with pytest.raises(ValueError):\n        run()", []),
        ("async def test_it():\n    await until(lambda: done)", []),
        ("def check():\n    assert True\ndef test_it():\n    check()", []),
        ("def check():\n    pass\ndef test_it():\n    check()", ["test_it"]),
        ("def first():\n    second()\ndef second():\n    first()\ndef test_it():\n    first()", ["test_it"]),
        ("def checked():\n    yield\n    assert True\ndef test_it(checked):\n    run()", []),
        ("class Box:\n    def look(self):\n        assert self\ndef test_it():\n    Box().look()", []),
        ("class Box:\n    def look(self):\n        assert self\ndef test_it():\n    Box()", ["test_it"]),
        ("def check():\n    assert True\ndef test_it():\n    run(check)", []),
        ("def test_it():\n    run_state_machine_as_test(Rules)", []),
        ("def test_it():\n    def within():\n        assert True\n    run(within)", []),
    ],
)
def test_checker_finds_tests_without_assertions(tmp_path: Path, source: str, expected: list[str]) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(source)
    assert list(unasserted(path)) == expected


def vacuous(path: Path) -> Iterator[str]:
    """Yield the assertions of a file that hold whatever the code does."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Assert) and always_true(node.test):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def always_true(test: ast.expr) -> bool:
    """Return True if an expression is true whatever its parts are."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Tuple(elts=parts):
            return bool(parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(map(always_true, parts))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(map(always_true, parts))
        case ast.Compare(left=ast.Call(func=ast.Name(id="len")), ops=[ast.GtE()], comparators=[ast.Constant(value=0)]):
            return True
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            return isinstance(left, ast.Name | ast.Constant) and ast.dump(left) == ast.dump(right)
    return False


def test_every_assertion_can_fail() -> None:
    found = {path.relative_to(TESTS).as_posix(): list(vacuous(path)) for path in sorted(TESTS.rglob("*.py"))}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("done() == 1 or True", True),
        ("(found, 'no')", True),
        ("len(found) >= 0", True),
        ("found == found", True),
        ("len(found) >= 1", False),
        ("found or other", False),
        ("found() == found()", False),
        ("depth(data) >= 0", False),
    ],
)
def test_checker_finds_assertions_that_cannot_fail(tmp_path: Path, test: str, expected: bool) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(f"def test_it():\n    assert {test}")
    assert bool(list(vacuous(path))) == expected


def test_no_file_is_too_long() -> None:
    paths = [path for folder in (ROOT / "src", TESTS) for path in folder.rglob("*.p*") if path.suffix in SUFFIXES]
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in paths}
    assert sorted(path for path, lines in lengths.items() if lines > MAX_LINES) == []


def test_tests_of_compiled_modules_run_on_both_builds() -> None:
    package = ROOT / "src" / "weirpool"
    compiled = [path.relative_to(package) for path in package.rglob("*.p*") if path.suffix in {".pxd", ".pyx"}]
    assert [path for path in compiled if runs_once((path.parent / f"test_{path.stem}.py").as_posix())] == []
    assert runs_once("journal/test_reader.py")
    assert not runs_once("journal/test_collect.py")


def test_tests_that_run_once_exist() -> None:
    assert [name for name in (*ONCE, *TWICE) if not (TESTS / name).exists()] == []
    assert {name.partition("/")[0] for name in TWICE} <= ONCE.keys()
