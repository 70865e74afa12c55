"""Known limits of each peer and their reasons. A run expects exactly these instead of "ok"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .peers import RIVER, TRANSPORTS

__all__ = ["LIMITS", "Limit"]


@dataclass(frozen=True)
class Limit:
    """A known limit of a peer.

    Args:
        peer: The peer's name.
        role: The peer's role.
        checks: The checks that fail because of it.
        seen: A pattern that the whole result of the check must match.
        reason: An explanation for the page.
        steps: The steps of a run in which it occurs; by default in all.
        by_chance: It does not always occur, so that "ok" is also expected.

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
        "It returns absent metadata as empty metadata.",
    ),
    _limit(
        "py",
        "client",
        "fail",
        r"AssertionError: no answer within .*",
        "Its error codes are a closed enumeration without those of applications: "
        "it drops an ERROR frame with code 0x301, and the request never ends.",
    ),
    _limit("py", "client", "resume", r"AssertionError: the library cannot resume", "It does not support resumption."),
    _limit("py", "server", "resume", r"SetupRejected: .*Resume not supported", "It does not support resumption."),
    _limit(
        "js-0.0.27",
        "server",
        "resume",
        r"ResumeRejected: .*RESUME not supported.*",
        "Only its client supports resumption.",
    ),
    _limit(
        "py",
        "server",
        "blob-empty",
        r"AssertionError: sizes: \[\] instead of \[0, 0, 0\]",
        "It sends an empty item as a PAYLOAD without the flag NEXT, which is not an item.",
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
        "Its responses and items have no metadata: the flag is never set.",
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
        "Its handlers can only fail with the code APPLICATION_ERROR.",
    ),
    _limit(
        "js-1.0",
        "server",
        "echo-20MB blob-20MB",
        r"not done within .*",
        "Its server ignores its own option for fragments; a frame of more than 16 MiB makes its encoder throw "
        "after the request counts as answered, so no response is sent.",
        ["tcp"],
    ),
    _limit(
        "rust",
        "client",
        "count-window",
        r"the library asks for everything at once",
        "It always requests 2^31-1 items, and cannot request fewer.",
    ),
    _limit(
        "rust",
        "client",
        "sum sum-late double double-cancel",
        r"INVALID: stream \d+: more items arrived than were requested",
        "It ignores REQUEST_N and sends all items of a channel at once; whether more are requested in time is random.",
        by_chance=True,
    ),
    _limit(
        "rust",
        "client",
        "count-cancel",
        r"no answer within 10s",
        "It requested everything: items of a canceled stream in flight arrive first; whether for seconds is random.",
        by_chance=True,
    ),
    _limit("rust", "client", "resume", r"the library cannot resume", "It does not support resumption."),
    _limit(
        "rust",
        "server",
        "echo-100kB echo-20MB",
        r"AssertionError: size: 65521 instead of .*",
        "It sets COMPLETE on the first fragment of a response, which takes precedence over FOLLOWS.",
    ),
    _limit(
        "rust",
        "server",
        "count-cancel",
        r"ProtocolError: stream \d+: more items arrived than were requested",
        "It ignores REQUEST_N and sends all items at once.",
    ),
    _limit(
        "rust",
        "server",
        "count count-window double double-cancel",
        r"ProtocolError: stream \d+: more items arrived than were requested",
        "It ignores REQUEST_N and sends all items at once; whether more are requested in time is random.",
        by_chance=True,
    ),
    _limit(
        "rust",
        "server",
        "resume",
        r"ProtocolError: stream \d+: more items arrived than were requested",
        "It supports neither resumption nor REQUEST_N: it sends all items at once.",
    ),
    _limit(
        "rust",
        "server",
        "fail",
        r"AssertionError: code and text: 0x201 boom instead of 0x301 boom",
        "Its handlers can only fail with the code APPLICATION_ERROR.",
    ),
    _limit("rust", "client", "lease", r"the library has no leases", "It does not support leases."),
    _limit(
        "rust",
        "server",
        "lease",
        r"AssertionError: no answer within .*",
        "It does not support leases, and never sends one.",
    ),
    _limit("js-1.0", "client", "lease", r"the library has no leases", "It does not support leases."),
    _limit("js-1.0", "server", "lease", r"SetupRejected: .*Lease has to be disabled", "It does not support leases."),
    _limit(
        "river-js",
        "client",
        "slow-cancel",
        r"the library cannot cancel a call",
        "v1.1 cannot cancel a call.",
        RIVER,
    ),
    _limit(
        "river-py-1.1",
        "client",
        "double-cancel",
        r"RiverException: Error in river, code: CANCEL, message: ",
        "It still buffers items of a stream that its user has left; when the buffer is full, it stops reading.",
        RIVER,
    ),
    _limit(
        "river-py",
        "client",
        "resume",
        r"SessionClosedRiverServiceException: .* session is closed.*",
        "It counts data written to a connection as received, so its next handshake omits it. A server without it "
        "must refuse (SESSION_STATE_MISMATCH), and the session ends. Whether a cut affects such a message is random.",
        RIVER,
        by_chance=True,
    ),
    _limit(
        "river-py-1.1",
        "client",
        "resume",
        r"AssertionError: items: .*",
        "If its connection breaks while it sends, it opens no other and ends its streams; when it does so is random.",
        RIVER,
        by_chance=True,
    ),
)
