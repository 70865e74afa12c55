"""Helpers of targets: comparable results, pieces of an input, and recorded bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.builds import Build

__all__ = ["attempt", "pieces", "vectors"]

VECTORS: Final = Path(__file__).parent.parent / "tests" / "vectors"


def attempt(build: Build, call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call, or its error in comparable form. Errors that are not Weirpool's are raised."""
    try:
        return call(*arguments)
    except build.module("weirpool.errors").WeirpoolError as error:
        return type(error).__name__, str(error), getattr(error, "ignorable", None)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """Yield `data` in pieces of `size` bytes; in one piece if it is 0."""
    step = size or max(len(data), 1)
    for at in range(0, len(data), step):
        yield data[at : at + step]


def vectors(name: str) -> list[tuple[bytes, str]]:
    """Return the bytes and prefixes of the golden vectors in a file."""
    entries = json.loads((VECTORS / f"{name}.json").read_text())
    return [(bytes.fromhex(entry["hex"]), entry.get("prefix", "")) for entry in entries]
