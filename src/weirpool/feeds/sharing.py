"""Which worker runs which feed: rendezvous hashing."""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["worker_of"]


def worker_of(name: str, workers: int) -> int:
    """Return the number of the worker that runs a feed.

    With one more worker, only the feeds that it takes over move: one of `workers` + 1.
    """
    return max(range(workers), key=lambda worker: blake2b(f"{worker}/{name}".encode(), digest_size=8).digest())
