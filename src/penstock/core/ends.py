"""Why sessions have ended that a client may still come back for."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from hashlib import sha256

from ..errors import LimitExceeded, LinkLost

__all__ = ["Ends"]


class Ends:
    """Remembers the ends of some sessions that their clients had no part in: a limit, or a time that was over.

    Args:
        limit: How many ends are remembered; the oldest one is forgotten first.

    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # By the digest of what names a session: these names are secrets.
        self._reasons: OrderedDict[bytes, tuple[bytes, str]] = OrderedDict()

    def note(self, name: bytes, identity: bytes, error: Exception | None) -> None:
        """Remember why the session `name` of the client `identity` has ended, where that is worth it."""
        if isinstance(error, LimitExceeded | LinkLost):
            self._reasons[sha256(name).digest()] = identity, str(error)
            if len(self._reasons) > self._limit:
                self._reasons.popitem(last=False)

    def reason(self, name: bytes, identity: bytes) -> str:
        """Return why the session `name` of the client `identity` has ended; empty where that is not known."""
        whose, reason = self._reasons.get(sha256(name).digest(), (b"", ""))
        return f"the session has ended: {reason}" if reason and hmac.compare_digest(whose, identity) else ""
