"""What a bridge has done so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from ..errors import ApplicationError, LinkError

__all__ = ["Counters", "code_of"]

MAX_CODES: Final = 50
"""Different codes that are counted separately: peers choose them."""


@dataclass
class Counters:
    """Totals over all clients of a bridge.

    Attributes:
        clients: Clients that are connected now.
        clients_total: All clients so far.
        upstream_connects: Connections to the upstream that were made.
        upstream_failures: Attempts to connect that failed.
        upstream_losses: Requests that failed because their connection broke.
        requests: Forwarded requests by kind, in both directions.
        items_down: Responses and items that went to clients.
        items_up: Items that clients have sent after their requests.
        errors: Failed requests by code.
        metadata_dropped: Requests and items that lost metadata, because the other protocol has no place for it.

    """

    clients: int = 0
    clients_total: int = 0
    upstream_connects: int = 0
    upstream_failures: int = 0
    upstream_losses: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    items_down: int = 0
    items_up: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    metadata_dropped: int = 0

    def failed(self, error: BaseException) -> None:
        """Count a failed request."""
        self.upstream_losses += isinstance(error, LinkError)
        code = code_of(error)
        self.errors[code if code in self.errors or len(self.errors) < MAX_CODES else "others"] += 1

    def as_json(self) -> dict[str, Any]:
        """Return the totals as values of JSON."""
        return vars(self) | {"requests": dict(self.requests), "errors": dict(self.errors)}


def code_of(error: BaseException) -> str:
    """Return the code of an error as text, or the name of its class."""
    if isinstance(error, ApplicationError):
        return f"0x{error.code:03X}" if isinstance(error.code, int) else error.code
    return type(error).__name__
