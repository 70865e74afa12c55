"""Every source file has its test file, and every test file its source.

`wire/framing.py` has `wire/test_framing.py`, `_build.py` has `test_build.py`, and a folder whose `__init__.py` defines
something has `test_<folder>.py` within.
"""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent
SRC = TESTS.parent / "src"

# Test files that belong to no single source file, and why.
WITHOUT_SOURCE = {
    "aio/test_balance_nodes.py": "balancing: nodes that refuse, come and go",
    "aio/test_hooks.py": "admission: connection hooks",
    "aio/test_reconnecting_ends.py": "reconnecting: sessions that are resumed, and servers that drain",
    "aio/test_reconnecting_served.py": "reconnecting: servers that go and come",
    "aio/test_requests.py": "dispatch: requests, and the answers of handlers",
    "aio/test_task_pump.py": "pumps: sources that are awaited",
    "aio/test_farewells.py": "all protocols and transports: what both sides say when they close",
    "test_docs.py": "README and docs: what they say",
    "test_failures.py": "the page of failures: the tests that it names",
    "test_exports.py": "the package as a whole, as penstock/__init__.py shows it",
    "test_layers.py": "all sources: who imports whom",
    "test_mirror.py": "all sources and tests: this file",
    "journal/test_collect_safety.py": "the collector and its log together: what they leave behind, whatever happens",
    "journal/test_collect_secrets.py": "the collector and its log together: nothing secret where others read",
    "reactivestreams/test_mini.py": "all that is said, as a reader understands it who knows the page alone",
    "reactivestreams/test_sockets.py": "the protocol on real links, below all that stands above a session",
    "river/test_oversized.py": "all parts of a session: messages that one side does not take for their size",
    "schema/test_codegen_served.py": "generated clients, against the services that their schemas came from",
    "test_states.py": "tools/states.py and the page that it writes",
    "transports/test_every.py": "all transports: what each must carry",
}
# Folders of tests that go across the layers.
ACROSS = {
    "benchmarks": "what compares two revisions: ratios, rounds and trees",
    "chaos": "links that stall and break, and what judges the chaos laboratory",
    "disk": "the journal on a disk that lies",
    "hostile": "peers that attack, over sockets and without",
    "saboteurs": "known mistakes, which the laboratories must find",
    "sim": "two sessions and a virtual clock",
    "walk": "how far a call walks through the sources, and how they hang together",
}


def mirror_of(source: Path) -> Path:
    """Return where the tests of a source lie; both are relative to their roots."""
    stem = source.parent.name if source.stem == "__init__" else source.stem.strip("_")
    return source.parent / f"test_{stem}.py"


def only_introduces(source: Path) -> bool:
    """Return whether this is an `__init__.py` that defines nothing of its own."""
    definitions = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return source.stem == "__init__" and not any(
        isinstance(node, definitions) for node in ast.parse(source.read_text()).body
    )


def expected_tests() -> set[str]:
    """Return the test file of every source, relative to tests/."""
    package = SRC / "penstock"
    sources = {path: path.relative_to(package) for path in package.rglob("*.py") if path != package / "__init__.py"}
    sources |= {path: path.relative_to(SRC) for path in SRC.glob("*.py")}
    return {mirror_of(path).as_posix() for source, path in sources.items() if not only_introduces(source)}


def actual_tests() -> set[str]:
    """Return the test files that mirror a source, relative to tests/."""
    paths = (path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return {path.as_posix() for path in paths if path.parts[0] not in ACROSS} - set(WITHOUT_SOURCE)


def test_every_source_has_its_tests() -> None:
    assert sorted(expected_tests() - actual_tests()) == []


def test_every_test_has_its_source() -> None:
    assert sorted(actual_tests() - expected_tests()) == []
