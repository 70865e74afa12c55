"""Other versions of Python, for peers that this one is too old for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["PythonMissing", "python_of"]

NEWEST = 20
"""The last minor version that is looked for."""
START_TIMEOUT = 30.0
"""Seconds in which an interpreter must tell its version."""
ASK = "import sys, venv, ensurepip; print(*sys.version_info[:2])"


class PythonMissing(Exception):
    """There is no such Python here."""


def python_of(least: tuple[int, int]) -> str:
    """Return an interpreter of version `least` or newer that can make environments: this one, where it will do.

    Others are looked for on PATH, and among those that pyenv has.

    Raises:
        PythonMissing: There is none.

    """
    for candidate in _candidates(least):
        if _version(candidate) >= least:
            return candidate
    wanted = ".".join(str(part) for part in least)
    raise PythonMissing(f"it needs Python {wanted} or newer, and none is on PATH or among pyenv's; this is {_this()}")


def _candidates(least: tuple[int, int]) -> Iterator[str]:
    yield sys.executable
    for minor in range(least[1], NEWEST):
        found = shutil.which(f"python3.{minor}")
        if found is not None:
            yield found
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(str(path) for path in root.glob("versions/3.*/bin/python3"))


def _version(python: str) -> tuple[int, ...]:
    """Return the version of an interpreter; (0,) where it does not run, or makes no environments."""
    try:
        said = subprocess.run([python, "-c", ASK], capture_output=True, text=True, timeout=START_TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return (0,)
    return tuple(int(part) for part in said.stdout.split())


def _this() -> str:
    return ".".join(str(part) for part in sys.version_info[:2])
