"""The memory that items take while they wait."""

from __future__ import annotations

from typing import Final

from ..account import ITEM_BYTES
from ..payload import MetadataPush, Payload, PayloadRun

__all__ = ["size_of"]

RUN_ITEM_BYTES: Final = 24
"""Memory that an item of a run takes in addition to its bytes: its offsets, and its header in the buffer."""


def size_of(entry: Payload | PayloadRun | MetadataPush) -> int:
    """Return the memory that an item, a run, or pushed metadata takes."""
    size = ITEM_BYTES
    if type(entry) is PayloadRun:
        run = entry
        size += run.size + RUN_ITEM_BYTES * len(run)
    elif type(entry) is Payload:
        payload = entry
        size += len(payload.data)
        if payload.metadata is not None:
            size += len(payload.metadata)
    else:
        size += len(entry.metadata)  # type: ignore[union-attr, arg-type]
    return size
