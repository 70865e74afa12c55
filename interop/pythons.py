"""Finds other versions of Python, for peers that need a newer one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["PythonMissing", "python_of"]

NEWEST = 20
"""The last minor version to look for."""
START_TIMEOUT = 30.0
"""Time limit for an interpreter to print its version, in seconds."""
ASK = "import sys, venv, ensurepip; print(*sys.version_info[:2])"


class PythonMissing(Exception):
    """No suitable Python is installed."""


def python_of(least: tuple[int, int]) -> str:
    """Return an interpreter of version `least` or newer that can create environments, preferably this one.

    Others are looked up on PATH and in pyenv.

    Raises:
        PythonMissing: No such interpreter was found.

    """
    for candidate in _candidates(least):
        if _version(candidate) >= least:
            return candidate
    wanted = ".".join(str(part) for part in least)
    raise PythonMissing(f"Python {wanted} or newer is needed, and was not found on PATH or in pyenv; this is {_this()}")


def _candidates(least: tuple[int, int]) -> Iterator[str]:
    yield sys.executable
    for minor in range(least[1], NEWEST):
        found = shutil.which(f"python3.{minor}")
        if found is not None:
            yield found
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(str(path) for path in root.glob("versions/3.*/bin/python3"))


def _version(python: str) -> tuple[int, ...]:
    """Return the version of an interpreter, or (0,) if it does not run or cannot create environments."""
    try:
        done = subprocess.run([python, "-c", ASK], capture_output=True, text=True, timeout=START_TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return (0,)
    return tuple(int(part) for part in done.stdout.split())


def _this() -> str:
    return ".".join(str(part) for part in sys.version_info[:2])
