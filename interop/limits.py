"""What each peer is known not to do, and why: a run demands to see exactly this, in place of "ok"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .peers import TRANSPORTS

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
        transports: Over what it is so; by default over any.

    """

    peer: str
    role: str
    checks: tuple[str, ...]
    seen: re.Pattern[str]
    reason: str
    transports: frozenset[str]


def _limit(peer: str, role: str, checks: str, seen: str, reason: str, transports: Iterable[str] = TRANSPORTS) -> Limit:
    return Limit(peer, role, tuple(checks.split()), re.compile(seen, re.DOTALL), reason, frozenset(transports))


LIMITS = (
    _limit(
        "py",
        "client",
        "no-metadata",
        r"AssertionError: metadata: b'' instead of None",
        "It hands out absent metadata as empty metadata.",
    ),
    _limit(
        "py",
        "client",
        "fail",
        r"AssertionError: no answer within .*",
        "Its error codes are a closed enumeration without those of applications: "
        "it drops an ERROR frame with code 0x301, and the request waits for ever.",
    ),
    _limit("py", "client", "resume", r"AssertionError: the library cannot resume", "It does not know resuming."),
    _limit("py", "server", "resume", r"SetupRejected: .*Resume not supported", "It does not know resuming."),
    _limit("js-0.0.27", "server", "resume", r"ResumeRejected: .*RESUME not supported.*", "Only its client resumes."),
    _limit(
        "py",
        "server",
        "blob-empty",
        r"AssertionError: sizes: \[\] instead of \[0, 0, 0\]",
        "It sends an empty item as a PAYLOAD without the flag NEXT, which is none.",
    ),
    _limit(
        "js-0.0.27",
        "client",
        "echo-20MB",
        r'The value of "value" is out of range\..*',
        "It sends no fragments; a frame of more than 16 MiB makes its encoder throw, and the connection closes.",
    ),
    _limit(
        "js-0.0.27",
        "server",
        "echo echo-shreds",
        r"AssertionError: metadata: None instead of .*",
        "Its answers and items carry no metadata: the flag is never set.",
    ),
    _limit(
        "js-0.0.27",
        "server",
        "echo-20MB blob-20MB",
        r"LinkLost: .*",
        "It sends no fragments; a frame of more than 16 MiB makes its encoder throw, and the connection closes.",
    ),
    _limit(
        "js-0.0.27",
        "server",
        "fail",
        r"AssertionError: code and text: 0x201 boom instead of 0x301 boom",
        "Its handlers can fail with one code only, APPLICATION_ERROR.",
    ),
    _limit(
        "js-1.0",
        "server",
        "echo-20MB blob-20MB",
        r"not done within .*",
        "Its server ignores its own option for fragments; a frame of more than 16 MiB makes its encoder throw "
        "when the request counts as answered already, so that no answer ever comes.",
    ),
)
