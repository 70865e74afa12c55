"""Which tests need no second run on the plain build.

`make test` runs all tests on the compiled build, and then on the plain build those that are not marked `once`. Tests of
compiled modules run on both. A test has the mark if it runs on both builds anyway, by the fixture `build` or `builds`,
or if it lies in a folder or file that is listed here.
"""

from __future__ import annotations

import pytest

# Folders and files whose tests look at no compiled module, each with what its tests look at.
ONCE = {
    "benchmarks": "what compares two revisions, in processes of their own",
    "chaos": "what judges the chaos laboratory",
    "cli": "what commands print, and how they end",
    "demo": "the pipeline with Spark, and its reports",
    "disk": "the journal",
    "hostile/test_journals.py": "the journal",
    "journal": "the journal, which compiles nothing",
    "saboteurs": "laboratories, which run on the plain build in a process of their own",
    "schema": "schemas, which compile nothing",
    "spark": "Spark, and what it reads from the journal",
    "store": "files of sessions",
    "test_docs.py": "README and docs",
    "test_exports.py": "names, and what importing them imports",
    "test_failures.py": "docs",
    "test_layers.py": "sources",
    "test_mirror.py": "sources and tests",
    "test_states.py": "tools/states.py and its page",
    "test_tests.py": "tests",
    "test_texts.py": "texts, which compile nothing",
    "walk": "sources, and a trace on the plain build in a process of its own",
}
# Files of these folders whose tests depend on sessions all the same.
TWICE = {
    "journal/test_collect.py",
    "journal/test_collect_breaks.py",
    "journal/test_collect_river.py",
    "journal/test_collect_safety.py",
    "schema/test_codegen_served.py",
}


def runs_once(path: str) -> bool:
    """Return whether the tests in a file, named by its path below tests/, need to run on one build only."""
    return path not in TWICE and (path in ONCE or path.partition("/")[0] in ONCE)


def mark_once(item: pytest.Item, path: str) -> None:
    """Mark a test that lies in the file `path` if it needs to run on one build only."""
    if runs_once(path) or not {"build", "builds"}.isdisjoint(getattr(item, "fixturenames", ())):
        item.add_marker("once")
