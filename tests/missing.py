"""What this machine may lack: tests that need it are skipped by name, and one summary says how to get it.

`WEIRPOOL_REQUIRE_TOOLS=1` makes each of these skips a failure.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

__all__ = ["PACKAGES", "find", "need", "need_module", "summary"]

REQUIRED: Final = os.environ.get("WEIRPOOL_REQUIRE_TOOLS") == "1"
PACKAGES: Final = {
    "bash": "bash",
    "cc": "gcc",
    "chromedriver": "chromium-driver",
    "chromium": "chromium",
    "fish": "fish",
    "git": "git",
    "initdb": "postgresql",
    "mount": "mount",
    "postgres": "postgresql",
    "zsh": "zsh",
}
"""Commands that tests run, with the packages of Debian that have them."""
# Debian does not put all of PostgreSQL on the PATH.
ELSEWHERE: Final = {"initdb": "/usr/lib/postgresql/*/bin", "postgres": "/usr/lib/postgresql/*/bin"}


def find(command: str) -> str | None:
    """Return the path of a command, or None if it is not installed."""
    if found := shutil.which(command):
        return found
    places = Path("/").glob(f"{ELSEWHERE[command][1:]}/{command}") if command in ELSEWHERE else ()
    return max(map(str, places), default=None)


def need(*commands: str) -> None:
    """Skip the test, or all that need a fixture, unless these commands are installed."""
    if lacking := [command for command in commands if find(command) is None]:
        packages = dict.fromkeys(PACKAGES[command] for command in lacking)
        _lacking(" and ".join(lacking), f"apt-get install {' '.join(packages)}")


def need_module(name: str) -> Any:
    """Return a module of a package that not every Python has; skip the test without it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        _lacking(error.name.partition(".")[0], "pip install --requirement requirements.lock")


def _lacking(what: str, how: str) -> NoReturn:
    reason = f"no {what} here: {how}"
    if REQUIRED:
        pytest.fail(f"{reason}; WEIRPOOL_REQUIRE_TOOLS=1 allows no test to be skipped", pytrace=False)
    pytest.skip(reason)


def summary(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return a line for each reason to skip tests, which says how many."""
    reasons = (report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple))
    found = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    return [f"{count} test{'s' * (count > 1)} skipped: {reason}" for reason, count in sorted(found.items())]
