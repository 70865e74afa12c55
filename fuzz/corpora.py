"""The inputs in the repository: one text file for each target, with one input in hex per line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["MAX_CORPUS_BYTES", "add", "path_of", "read"]

FOLDER: Final = Path(__file__).parent / "corpus"
MAX_CORPUS_BYTES: Final = 65_536
"""Maximum size of the inputs of one target: all of them run in every test run."""


def path_of(target: str) -> Path:
    """Return the file of a target."""
    return FOLDER / f"{target}.txt"


def read(target: str) -> list[bytes]:
    """Return the inputs of a target."""
    path = path_of(target)
    return [bytes.fromhex(line) for line in path.read_text().splitlines()] if path.exists() else []


def add(target: str, inputs: Iterable[bytes]) -> int:
    """Add inputs, shortest first, as long as there is space; return how many."""
    known = set(read(target))
    size = sum(map(len, known))
    before = len(known)
    for data in sorted(set(inputs) - known, key=len):
        size += len(data)
        if size > MAX_CORPUS_BYTES:
            break
        known.add(data)
    path_of(target).write_text("".join(f"{data.hex()}\n" for data in sorted(known)))
    return len(known) - before
