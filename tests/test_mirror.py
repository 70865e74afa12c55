"""Every source file has its test file, and every test file its source.

`wire/framing.py` has `wire/test_framing.py`, `_build.py` has `test_build.py`, and a folder whose `__init__.py` defines
something has `test_<folder>.py` within. `test_<source>_<subject>.py` beside `test_<source>.py` holds the tests of one
subject that would make it too long.
"""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent
SRC = TESTS.parent / "src"

# Test files that do not belong to a single source file, with the reason.
WITHOUT_SOURCE = {
    "aio/test_hooks.py": "admission: connection hooks",
    "aio/test_requests.py": "dispatch: requests, and the answers of handlers",
    "aio/test_task_pump.py": "pumps: sources that are awaited",
    "aio/test_rolling.py": "all protocols and transports: a rolling restart under load",
    "aio/test_canceled_closes.py": "peers, servers and dialer: tasks that are canceled while they connect or close",
    "aio/test_farewells.py": "all protocols and transports: what both sides say when they close",
    "test_builds.py": "tests/builds.py, which keeps both builds in one process",
    "test_bounds.py": "all compiled sources: that they check bounds, and which have pointers",
    "test_deploy.py": "the examples in deploy/",
    "test_distribution.py": "what is published: its files, its metadata, and that it works where it is installed",
    "test_docs.py": "README and docs: what they say",
    "test_failures.py": "the page of failures: the tests that it names",
    "test_exports.py": "the package as a whole, as weirpool/__init__.py shows it",
    "test_layers.py": "all sources: who imports whom",
    "test_labs.py": "tests/labs.py and tests/sampling.py, which leave some tests to laboratories",
    "test_leaks.py": "tests/leaks.py, which notices what a test leaves behind",
    "test_missing.py": "tests/missing.py, which says what this machine lacks",
    "test_smoke.py": "tests/smoke.py, with which wheels are tested, here and without what Windows lacks",
    "test_mirror.py": "all sources and tests: this file",
    "test_tests.py": "all tests: that they assert, and their length",
    "reactivestreams/test_mini.py": "all that is said, as a reader understands it who knows the page alone",
    "reactivestreams/test_sockets.py": "the protocol on real links, below all that stands above a session",
    "river/test_oversized.py": "all parts of a session: messages that one side does not take for their size",
    "test_reach.py": "tools/reach.py",
    "test_scale.py": "tools/scale.py and the page that it writes",
    "test_step.py": "tools/step.py, and the number of packages in the Makefile",
    "test_states.py": "tools/states.py and the page that it writes",
    "test_workflows.py": "what runs on the forge, and before a commit",
    "sync/test_notebook.py": "the notebook in examples/, and its page",
    "transports/test_every.py": "all transports: what each must carry",
}
# Folders of tests across several layers.
ACROSS = {
    "benchmarks": "what compares two revisions: ratios, rounds and trees",
    "chaos": "links that stall and break, and what judges the chaos laboratory",
    "cluster": "six feeds, a store and a cluster of Spark, in processes that share no disk",
    "disk": "the journal on a disk that lies",
    "floods": "processes that are flooded, and the memory that they use",
    "docs": "the pages: their code, as printed, and the site that is built from them",
    "fuzz": "the fuzzer, and its targets with known inputs",
    "hostile": "peers that attack, over sockets and without",
    "rolling": "servers in processes of their own, replaced under load",
    "saboteurs": "known mistakes, which the laboratories must find",
    "sim": "two sessions and a virtual clock",
    "untrusted": "texts of peers, where they come out: in shells, programs, pages and terminals",
    "walk": "how far a call walks through the sources, and how they hang together",
}


def mirror_of(source: Path) -> Path:
    """Return the path of a source's test file; both paths are relative to their roots."""
    stem = source.parent.name if source.stem == "__init__" else source.stem.strip("_")
    return source.parent / f"test_{stem}.py"


def only_introduces(source: Path) -> bool:
    """Return True if the file is an `__init__.py` without definitions."""
    definitions = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return source.stem == "__init__" and not any(
        isinstance(node, definitions) for node in ast.parse(source.read_text()).body
    )


def expected_tests() -> set[str]:
    """Return the test file of every source, relative to tests/."""
    package = SRC / "weirpool"
    sources = {path: path.relative_to(package) for path in package.rglob("*.py") if path != package / "__init__.py"}
    sources |= {path: path.relative_to(SRC) for path in SRC.glob("*.py")}
    return {mirror_of(path).as_posix() for source, path in sources.items() if not only_introduces(source)}


def actual_tests() -> set[str]:
    """Return the test files that must mirror a source, relative to tests/."""
    paths = (path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return {path.as_posix() for path in paths if path.parts[0] not in ACROSS} - set(WITHOUT_SOURCE)


def is_one_subject(test: str, whole: set[str]) -> bool:
    """Return True for `test_<source>_<subject>.py` beside the `test_<source>.py` of one of `whole`."""
    return any(test.startswith(f"{other.removesuffix('.py')}_") for other in whole)


def test_every_source_has_its_tests() -> None:
    assert sorted(expected_tests() - actual_tests()) == []


def test_every_test_has_its_source() -> None:
    expected = expected_tests()
    assert [test for test in sorted(actual_tests() - expected) if not is_one_subject(test, expected)] == []


def test_subject_files_are_beside_their_source_test() -> None:
    whole = {"journal/test_collect.py"}
    assert is_one_subject("journal/test_collect_river.py", whole)
    assert not is_one_subject("journal/test_collecting.py", whole)
    assert not is_one_subject("river/test_collect_river.py", whole)


def test_exceptions_are_needed() -> None:
    expected = expected_tests()
    assert [test for test in WITHOUT_SOURCE if test in expected or is_one_subject(test, expected)] == []
    assert [test for test in WITHOUT_SOURCE if not (TESTS / test).exists()] == []
