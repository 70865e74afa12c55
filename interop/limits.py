"""What each peer is known not to do, and why: a run demands to see exactly this, in place of "ok"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .peers import RIVER, TRANSPORTS

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
        steps: In which steps of a run it is so; by default in any.
        by_chance: Whether it shows only now and then, so that "ok" is no surprise.

    """

    peer: str
    role: str
    checks: tuple[str, ...]
    seen: re.Pattern[str]
    reason: str
    steps: frozenset[str]
    by_chance: bool


def _limit(
    peer: str,
    role: str,
    checks: str,
    seen: str,
    reason: str,
    steps: Iterable[str] = (*TRANSPORTS, "lease"),
    by_chance: bool = False,
) -> Limit:
    pattern = re.compile(seen, re.DOTALL)
    return Limit(peer, role, tuple(checks.split()), pattern, reason, frozenset(steps), by_chance)


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
        ["tcp"],
    ),
    _limit(
        "js-0.0.27",
        "client",
        "echo-20MB",
        r"a message has at most 16777215 bytes here",
        "It sends no fragments, and over WebSocket even frames that are longer than the protocol's 24 bits allow.",
        ["ws"],
    ),
    _limit(
        "js-0.0.27",
        "server",
        "echo-20MB blob-20MB",
        r"LimitExceeded: .* a message has at most 16777215 bytes here",
        "It sends no fragments, and over WebSocket even frames that are longer than the protocol's 24 bits allow.",
        ["ws"],
    ),
    _limit(
        "js-1.0",
        "server",
        "echo-20MB blob-20MB",
        r"LimitExceeded: .* a message has at most 16777215 bytes here",
        "Its server ignores its own option for fragments, "
        "and sends frames over WebSocket that are longer than the protocol's 24 bits allow.",
        ["ws"],
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
        ["tcp"],
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
        ["tcp"],
    ),
    _limit(
        "rust",
        "client",
        "count-window",
        r"the library asks for everything at once",
        "It always asks for 2^31-1 items, and has no way to ask for fewer.",
    ),
    _limit(
        "rust",
        "client",
        "sum sum-late double double-cancel",
        r"INVALID: stream \d+ brought more items than were asked for",
        "It ignores REQUEST_N, and sends all items of a channel at once; whether more is asked for in time is chance.",
        by_chance=True,
    ),
    _limit(
        "rust",
        "client",
        "count-cancel",
        r"no answer within 3s",
        "It asked for everything: what is under way of a canceled stream comes first; whether for seconds is chance.",
        by_chance=True,
    ),
    _limit("rust", "client", "resume", r"the library cannot resume", "It does not know resuming."),
    _limit(
        "rust",
        "server",
        "echo-100kB echo-20MB",
        r"AssertionError: size: 65521 instead of .*",
        "It sets COMPLETE on the first fragment of an answer, which by the protocol overrules that more follow.",
    ),
    _limit(
        "rust",
        "server",
        "count-cancel",
        r"ProtocolError: stream \d+ brought more items than were asked for",
        "It ignores REQUEST_N, and sends all items at once.",
    ),
    _limit(
        "rust",
        "server",
        "count count-window double double-cancel",
        r"ProtocolError: stream \d+ brought more items than were asked for",
        "It ignores REQUEST_N, and sends all items at once; whether more is asked for in time is chance.",
        by_chance=True,
    ),
    _limit(
        "rust",
        "server",
        "resume",
        r"ProtocolError: stream \d+ brought more items than were asked for",
        "It does not know resuming, nor REQUEST_N: it sends all items at once.",
    ),
    _limit(
        "rust",
        "server",
        "fail",
        r"AssertionError: code and text: 0x201 boom instead of 0x301 boom",
        "Its handlers can fail with one code only, APPLICATION_ERROR.",
    ),
    _limit("rust", "client", "lease", r"the library has no leases", "It has no leases."),
    _limit("rust", "server", "lease", r"AssertionError: no answer within .*", "It has no leases; none ever comes."),
    _limit("js-1.0", "client", "lease", r"the library has no leases", "It has no leases."),
    _limit("js-1.0", "server", "lease", r"SetupRejected: .*Lease has to be disabled", "It has no leases."),
    _limit(
        "river-js",
        "client",
        "slow-cancel",
        r"the library cannot cancel a call",
        "v1.1 has no way to cancel a call.",
        RIVER,
    ),
    _limit(
        "river-py-1.1",
        "client",
        "double-cancel",
        r"RiverException: Error in river, code: CANCEL, message: ",
        "What comes for a stream that its user has left is still kept; once that is full, nothing is read any more.",
        RIVER,
    ),
    _limit(
        "river-py",
        "client",
        "resume",
        r"SessionClosedRiverServiceException: .* session is closed.*",
        "What it wrote to a connection counts as sent, and its next handshake leaves it out; a server without it "
        "must refuse (SESSION_STATE_MISMATCH), and the session ends. Whether a cut meets such a message is chance.",
        RIVER,
        by_chance=True,
    ),
    _limit(
        "river-py-1.1",
        "client",
        "resume",
        r"AssertionError: items: .*",
        "Where its connection breaks while it sends, it makes no other, and ends its streams; when it does is chance.",
        RIVER,
        by_chance=True,
    ),
)
