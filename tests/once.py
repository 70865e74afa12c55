"""Marks tests that need no second run on the plain build.

`make test` and `make labs` run their tests on the compiled build, and then on the plain build those that are not marked
`once`. Tests of compiled modules run on both. A test has the mark if it runs on both builds anyway, by the fixture
`build` or `builds`, or if it is in a folder or file that is listed here.
"""

from __future__ import annotations

import pytest

# Folders and files whose tests use no compiled module, each with the subject of its tests.
ONCE = {
    "access": "options, which have no compiled modules",
    "benchmarks": "comparison of two revisions, in separate processes",
    "chaos": "the checks of the chaos laboratory",
    "cluster": "a laboratory of processes; that both builds collect alike is shown in journal/",
    "cli": "output and exit codes of commands",
    "decoding": "decoders, which have one compiled module; the depth of data is compared elsewhere",
    "dedup": "handlers and a database, which have no compiled modules",
    "demo": "the pipeline with Spark, and its reports",
    "disk": "the journal",
    "docs": "pages of the documentation, and their site",
    "feeds": "supervision of collectors, which has no compiled modules",
    "frames": "data frames, which have no compiled modules",
    "fuzz": "the fuzzer; its targets run on both builds anyway",
    "hostile/test_journals.py": "the journal",
    "archive": "sealed segments, which have no compiled modules",
    "load": "measurements of whole connections",
    "bridging": "forwarding; its one compiled part, the demand of a client, is tested with both builds in aio/",
    "mocking": "services of made-up values",
    "recording": "files",
    "objects": "object stores, which have no compiled modules",
    "journal": "the journal; its compiled modules are tested in the files below",
    "receiving": "the journal, and handlers that write to it",
    "replica": "the journal in a store",
    "reflection": "descriptions of services, which have no compiled modules",
    "rolling": "replaced processes; that both builds close alike is shown in sim/ and aio/",
    "saboteurs": "laboratories, which run on the plain build in a separate process",
    "schema": "schemas, which have no compiled modules",
    "spark": "Spark, and its reads of the journal",
    "store": "files of sessions",
    "sync": "threads around the asyncio API, which is tested on both builds",
    "test_deploy.py": "the examples in deploy/",
    "test_distribution.py": "what is published; its wheel is plain",
    "test_docs.py": "README and docs",
    "test_exports.py": "public names, and the modules that they import",
    "test_failures.py": "docs",
    "test_layers.py": "sources",
    "test_mirror.py": "sources and tests",
    "test_states.py": "tools/states.py and its page",
    "test_tests.py": "tests",
    "test_texts.py": "texts, which has no compiled modules",
    "testing/test_publisher_mutants.py": "the kit; what it says of publishers of both builds is compared elsewhere",
    "untrusted": "texts, and what shells, browsers and terminals make of them",
    "tryit": "a page and what is behind it, which have no compiled modules",
    "walk": "sources, and a trace on the plain build in a separate process",
}
# Files in these folders whose tests depend on sessions, or on a compiled module.
TWICE = {
    "decoding/test_avro_values.py",
    "journal/test_collect.py",
    "journal/test_collect_breaks.py",
    "journal/test_collect_river.py",
    "journal/test_collect_safety.py",
    "journal/test_encoder.py",
    "schema/test_codegen_served.py",
}


def runs_once(path: str) -> bool:
    """Return True if the tests in a file, by its path below tests/, need to run on one build only."""
    return path not in TWICE and (path in ONCE or path.partition("/")[0] in ONCE)


def mark_once(item: pytest.Item, path: str) -> None:
    """Mark a test in the file `path` if it needs to run on one build only."""
    if runs_once(path) or not {"build", "builds"}.isdisjoint(getattr(item, "fixturenames", ())):
        item.add_marker("once")
