"""Fixtures and rules for all tests: the two builds, and coroutine tests."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import os
from collections.abc import Generator
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest

from tests import builds as both_builds
from tests import missing, sampling
from tests.accounts import check_ledger
from tests.builds import Build
from tests.labs import mark_lab
from tests.leaks import Handlers, Threads
from tests.logs import restore_logging
from tests.once import mark_once
from weirpool.transports import places

ASYNC_TEST_SECONDS = 60.0
"""The time limit of a coroutine test, which is canceled then and fails where it waits."""

PASSED = pytest.StashKey[bool]()
LOGGING = pytest.StashKey[tuple[tuple[logging.Handler, ...], int]]()
MODULES = pytest.StashKey[dict[str, ModuleType]]()
BEFORE = pytest.StashKey[Handlers]()
RUNNING = pytest.StashKey[Threads]()

# Test machines are shared, so no example has a deadline. CI uses the same examples each time.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def builds() -> dict[str, Build]:
    """All available builds, by name."""
    return {name: both_builds.load(name) for name in both_builds.available()}


@pytest.fixture(scope="session", params=both_builds.available())
def build(request: pytest.FixtureRequest, builds: dict[str, Build]) -> Build:
    """Each build in turn; see tests/builds.py."""
    return builds[request.param]


@pytest.fixture
def silence_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No silent link has to give its place up, however slow this machine is."""
    monkeypatch.setattr(places, "SPARED_SECONDS", inf)


@pytest.fixture
def silence_punished(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest silent link has to give its place up at once."""
    monkeypatch.setattr(places, "SPARED_SECONDS", 0.0)


def pytest_xdist_auto_num_workers() -> int:
    """Return the number of test processes: one more than there are cores, because many tests wait for others."""
    return (os.cpu_count() or 1) + 1


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests of laboratories and those that need no second run, and run those of Spark in one process."""
    path = item.path.relative_to(Path(__file__).parent).as_posix()
    mark_once(item, path)
    mark_lab(item, path)
    if _uses_spark(item):
        item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tables before tests are selected by their marks."""
    sampling.mark_tables(items)


def pytest_collection() -> None:
    """Collect no garbage while tests are collected: a quarter of that time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector ignore what lasts as long as the run: a full collection takes half a second with it."""
    gc.enable()
    gc.collect()
    gc.freeze()


def _uses_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None or "spark" in getattr(item, "fixturenames", ())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Note what is there before the test."""
    root = logging.getLogger()
    item.stash[LOGGING] = tuple(root.handlers), root.level
    item.stash[MODULES] = both_builds.modules()
    item.stash[BEFORE] = Handlers()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Check that the test has left nothing behind and, if it passed, no bytes in the ledger."""
    result = yield
    # What still follows collectors would go on in later tests.
    for module in both_builds.imported("weirpool.serving.links"):
        module.close_links()
    if replaced := both_builds.restore_modules(item.stash[MODULES]):
        raise AssertionError(f"after the test, imports find other modules than before it: {', '.join(replaced)}")
    # A test that has been skipped, or whose fixtures failed, has started no threads.
    threads = item.stash[RUNNING].left() if RUNNING in item.stash else []
    if left := [*item.stash[BEFORE].left(), *threads]:
        raise AssertionError(f"after the test, {'; '.join(left)}")
    if restore_logging(*item.stash[LOGGING]):
        raise AssertionError("the test set up the root logger, for all tests after it; use tests.logs.kept_logging")
    if item.stash.get(PASSED, False):
        for module in both_builds.imported("weirpool.ledger"):
            check_ledger(module.LEDGER)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Note whether the test has passed. The traceback of one that has failed keeps its connections."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Note which threads run, and make imports inside a test that uses `build` import that build."""
    item.stash[RUNNING] = Threads()
    build = getattr(item, "funcargs", {}).get("build")
    if not isinstance(build, Build):
        return (yield)
    with build.active():
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in a new event loop, for `ASYNC_TEST_SECONDS` at most, five times as long if slow."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}

    slow = pyfuncitem.get_closest_marker("slow") is not None

    async def run() -> None:
        async with asyncio.timeout(ASYNC_TEST_SECONDS * (5 if slow else 1)):
            await test(**arguments)

    asyncio.run(run())
    return True


def pytest_report_header() -> list[str]:
    """Return the names of the tested builds, and the seed of samples."""
    return [f"weirpool builds: {', '.join(both_builds.available())}", f"weirpool labs: {sampling.report()}"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once what was skipped and why, and how to get what is missing."""
    if lines := missing.summary(terminalreporter.stats.get("skipped", [])):
        terminalreporter.section("skipped")
        for line in lines:
            terminalreporter.write_line(line)
