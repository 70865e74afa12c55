"""Every source file has its test file, and every test file its source."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
SRC = TESTS.parent / "src"

# Test files that belong to no single source file, and why.
WITHOUT_SOURCE = {
    "test_exports.py": "the package as a whole, as penstock/__init__.py shows it",
    "test_layers.py": "all sources: who imports whom",
    "test_mirror.py": "all sources and tests: this file",
}
# Folders of tests that go across the layers.
ACROSS = {
    "chaos": "links that stall and break",
    "sim": "two sessions and a virtual clock",
}


def expected_tests() -> set[str]:
    """Return the test file of every source, relative to tests/."""
    sources = [path.relative_to(SRC / "penstock") for path in (SRC / "penstock").rglob("*.py")]
    sources += [path.relative_to(SRC) for path in SRC.glob("*.py")]
    return {
        (path.parent / f"test_{path.stem.lstrip('_')}.py").as_posix() for path in sources if path.stem != "__init__"
    }


def actual_tests() -> set[str]:
    """Return the test files that mirror a source, relative to tests/."""
    paths = (path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return {path.as_posix() for path in paths if path.parts[0] not in {*WITHOUT_SOURCE, *ACROSS}}


def test_every_source_has_its_tests() -> None:
    assert sorted(expected_tests() - actual_tests()) == []


def test_every_test_has_its_source() -> None:
    assert sorted(actual_tests() - expected_tests()) == []
