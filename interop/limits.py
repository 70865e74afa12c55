"""What each peer is known not to do, and why: a run demands to see exactly this, in place of "ok"."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["LIMITS", "Limit"]


@dataclass(frozen=True)
class Limit:
    """One thing that a peer cannot do.

    Args:
        peer: The peer's name.
        role: Which side it plays.
        checks: What fails for this reason.
        seen: A pattern that the check's result must match, whole.
        reason: Why, for people.

    """

    peer: str
    role: str
    checks: tuple[str, ...]
    seen: re.Pattern[str]
    reason: str


def _limit(peer: str, role: str, checks: str, seen: str, reason: str) -> Limit:
    return Limit(peer, role, tuple(checks.split()), re.compile(seen, re.DOTALL), reason)


NO_FRAGMENTS_0 = "It sends no fragments, and its encoder refuses a frame of more than 16 MiB: the connection closes."

LIMITS = (
    _limit(
        "py",
        "client",
        "fail",
        r"AssertionError: no answer within .*",
        "Its error codes are a closed enumeration without any application code: "
        "it drops an ERROR frame with code 0x301, and the request waits for ever.",
    ),
    _limit(
        "py",
        "client",
        "no-metadata",
        r"AssertionError: metadata: b'' instead of None",
        "It hands out absent metadata as empty metadata.",
    ),
    _limit(
        "js-0.0.27",
        "client",
        "echo-20MB",
        r'The value of "value" is out of range\..*',
        NO_FRAGMENTS_0,
    ),
)
