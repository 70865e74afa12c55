"""What an input reaches: edges of compiled code, and pairs of consecutive lines of plain code."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

__all__ = ["Edges", "Lines", "Sensor"]


class Sensor(Protocol):
    """Observes one run after another."""

    def start(self) -> None:
        """Start a run."""

    def stop(self) -> int:
        """End the run, and return how much it reached that no earlier one did."""


class Edges:
    """The edges of code that was compiled with coverage; `edges.c` must be loaded already."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._clear = library.edges_clear
        self._new = library.edges_new
        self._new.restype = ctypes.c_size_t

    def start(self) -> None:
        """Start a run."""
        self._clear()

    def stop(self) -> int:
        """Return the number of edges that were taken by a new order of magnitude."""
        return int(self._new())


class Lines:
    """Consecutive lines of the Python files in a folder.

    Args:
        folder: Code outside of it is not observed.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._reached: set[tuple[CodeType, int, int]] = set()
        self._size = 0
        self._before = 0

    def start(self) -> None:
        """Start a run."""
        self._size = len(self._reached)
        self._before = 0
        sys.settrace(self._called)

    def stop(self) -> int:
        """Return the number of new pairs of lines."""
        sys.settrace(None)
        return len(self._reached) - self._size

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(self._folder) else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        self._reached.add((frame.f_code, self._before, frame.f_lineno))
        self._before = frame.f_lineno
        return self._line
