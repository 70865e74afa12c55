"""Credit: how many items a half may still carry."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_REQUEST_N", "add"]

MAX_REQUEST_N: Final = 0x7FFFFFFF
"""RSocket 1.0, REQUEST_N: 31 bits. It is a large number like any other, never "unbounded"."""


def add(credit: int, count: int) -> int:
    """Return `credit` and `count` together, at most 2^31-1 (RSocket 1.0, Reactive Streams Semantics)."""
    total = credit + count
    return total if total < MAX_REQUEST_N else MAX_REQUEST_N
