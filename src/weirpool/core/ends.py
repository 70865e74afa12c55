"""The reasons why sessions ended, for clients that try to resume them later."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from hashlib import sha256

from ..errors import LimitExceeded, LinkLost

__all__ = ["Ends"]


class Ends:
    """Remembers why sessions ended for which their clients are not to blame: limits and timeouts.

    Args:
        limit: How many ends to remember; the oldest is forgotten first.

    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # By the digest of the session's name, because the names are secrets.
        self._reasons: OrderedDict[bytes, tuple[bytes, str]] = OrderedDict()

    def note(self, name: bytes, identity: bytes, error: Exception | None) -> None:
        """Remember why the session `name` of the client `identity` ended, if `error` is a limit or a timeout."""
        if isinstance(error, LimitExceeded | LinkLost):
            self._reasons[sha256(name).digest()] = identity, str(error)
            if len(self._reasons) > self._limit:
                self._reasons.popitem(last=False)

    def reason(self, name: bytes, identity: bytes) -> str:
        """Return why the session `name` of the client `identity` ended; an empty string if that is not known."""
        owner, reason = self._reasons.get(sha256(name).digest(), (b"", ""))
        return f"the session has ended: {reason}" if reason and hmac.compare_digest(owner, identity) else ""
