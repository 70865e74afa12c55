"""The file descriptors of this process: how many clients may use up, and how many are left to the process itself.

Each connection needs one, and each name that a reader of a served journal holds. They must not use up those that the
process needs for its own files: a journal starts segments and replaces files while it grows.
"""

from __future__ import annotations

import os
from typing import Final

__all__ = ["UNLIMITED", "limit", "reserve", "spare"]

UNLIMITED: Final = 1 << 30
"""More descriptors than there are."""
FEW: Final = 16
"""Descriptors that a small process needs at once besides its connections: those of a segment that is started, of a file
that is replaced, of folders that are synced, in a few threads."""
MANY: Final = 1_024


def limit() -> int:
    """Return how many descriptors this process may have."""
    try:
        # Not on Windows, where sockets are not limited.
        import resource
    except ImportError:
        return UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else min(soft, UNLIMITED)


def reserve(limit: int) -> int:
    """Return how many of `limit` descriptors are kept for the process itself: an eighth, and a quarter of a few."""
    return max(min(limit // 4, FEW), min(limit // 8, MANY))


def spare() -> int:
    """Return how many descriptors clients may use now; not more than 0 if there are only those of the reserve."""
    allowed = limit()
    if allowed == UNLIMITED:
        return UNLIMITED
    try:
        # POSIX.1-2017, 2.14: the lowest one that is free. All below it are in use.
        lowest = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return 0
    os.close(lowest)
    return allowed - reserve(allowed) - lowest
