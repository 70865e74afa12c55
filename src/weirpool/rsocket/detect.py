"""Detects the dialect of a link by the layout of its first bytes, not by the version that the peer claims.

Common foreign protocols are recognized too, so that the log can name them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ..errors import ProtocolError
from ..settings import Settings
from ..wire.fields import GREATEST_31
from ..wire.rsocket.frames import STRICT, FrameType
from .codes import Code
from .dialect import DIALECTS, REACTIVESOCKET_0_0, REACTIVESOCKET_0_2, RSOCKET_1_0, Dialect

__all__ = ["NotSetup", "detect", "is_resume"]

MAX_HEAD_BYTES: Final = 16
"""The number of bytes that are enough to distinguish all layouts."""

FOREIGN: Final = (
    (b"\x16\x03", "a TLS ClientHello; connect with +tcp, or serve with +tls"),
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"PRI ", "HTTP/2"),
    (b"SSH-", "SSH"),
)
"""Foreign protocols by their first bytes."""

SETUP: Final = int(FrameType.SETUP)
RESUME: Final = int(FrameType.RESUME)
TYPES: Final = frozenset(FrameType)
TOO_LONG: Final = {SETUP: Code.REJECTED_SETUP, RESUME: Code.REJECTED_RESUME}
"""How a frame that is valid but too long is answered."""
CANDIDATE: Final = bytes((0, 0, 0, 2))
"""Version 0.2 in SETUP and RESUME: the bytes after their header."""
V00_HEADER_BYTES: Final = 12
V00_SETUP: Final = 0x0001
V00_TYPES: Final = (V00_SETUP, 0x0002, 0x0003, *range(0x0011, 0x0017), 0x0020, 0x0021, 0x0031, 0xFFFF)
"""ReactiveSocket 0.0, Frame Types."""


class NotSetup(ProtocolError):
    """The first bytes do not begin a session of a dialect that is served.

    Attributes:
        dialect: The dialect in which to answer with the error's code; None if the peer may speak another protocol.

    """

    code: Code

    def __init__(self, message: str, dialect: Dialect | None = None, code: Code = Code.INVALID_SETUP) -> None:
        super().__init__(message, code)
        self.dialect = dialect


def is_resume(head: bytes) -> bool:
    """Return whether the first frame is RESUME on stream 0. Only valid for dialects with a 24-bit length."""
    return head[7] >> 2 == RESUME and not any(head[3:7])


def detect(
    head: bytes, settings: Settings, served: Collection[str], *, messages: bool = False, exclusive: bool = False
) -> Dialect | None:
    """Return the dialect of a link that begins with `head`; None if more bytes are needed.

    Args:
        head: The first bytes.
        settings: Limits, and how version 0.2 is read.
        served: The names of the dialects that the server speaks.
        messages: The transport carries messages, which have a 24-bit length in all dialects.
        exclusive: No client of another protocol gets this far.

    Raises:
        NotSetup: They are not one of the dialects `served`. The error names what was found.

    """
    if not exclusive:
        for start, name in FOREIGN:
            if head.startswith(start):
                raise NotSetup(f"the first bytes are {name}, not RSocket")
    try:
        return _layout(head, settings, served, messages)
    except NotSetup as error:
        # RSocket 1.0 and ReactiveSocket 0.2, Connection Establishment: anything but SETUP MUST be answered. On byte
        # streams of several dialects, bytes with another layout need not be a frame.
        if error.dialect is None and (exclusive or len(served) < len(DIALECTS)):
            error.dialect = next(each for each in DIALECTS.values() if each.name in served)
        raise


def _layout(head: bytes, settings: Settings, served: Collection[str], messages: bool) -> Dialect | None:
    """Return the dialect with the layout of `head`; None if more bytes are needed. Raises NotSetup as `detect` does."""
    # Over messages, frames of ReactiveSocket 0.0 with long stream ids look like later ones.
    first = _first_draft(head, settings, messages) if tuple(served) == (REACTIVESOCKET_0_0.name,) else None
    found = first or _three_bytes(head, settings, served) or _first_draft(head, settings, messages)
    if found is not None:
        if found.name not in served:
            raise NotSetup(f"the first bytes are {found.name}, which this server does not offer", found)
        return found
    if _may_be_longer(head, messages):
        return None
    length = int.from_bytes(head[:4], "big")
    if head[4:6] == b"\x00\x01" and head[8:12] == bytes(4) and min(length, len(head)) >= MAX_HEAD_BYTES:
        claimed = f"{int.from_bytes(head[12:14], 'big')}.{int.from_bytes(head[14:16], 'big')}"
        what = f"a SETUP of ReactiveSocket 0.1, which is not supported; it claims version {claimed}"
        raise NotSetup(f"the first bytes are {what}")
    raise NotSetup(f"the first bytes are {head[:9].hex()}, not RSocket")


def _three_bytes(head: bytes, settings: Settings, served: Collection[str]) -> Dialect | None:
    """Return the dialect of a frame of RSocket 1.0 or ReactiveSocket 0.2, if it is one."""
    if len(head) < 9:
        return None
    length = int.from_bytes(head[:3], "big")
    stream_id = int.from_bytes(head[3:7], "big")
    type = head[7] >> 2
    if length < 6 or stream_id >> 31 or type not in TYPES or type > FrameType.EXT:
        return None
    if length > settings.max_setup_frame_bytes:
        raise _too_long(head, length, settings, RSOCKET_1_0, TOO_LONG.get(type) if stream_id == 0 else None)
    if RSOCKET_1_0.name not in served:
        # Malformed frames and other versions are answered as in 0.2.
        return REACTIVESOCKET_0_2
    if type not in TOO_LONG or length < 10 or (len(head) >= 13 and head[9:13] != CANDIDATE):
        return RSOCKET_1_0
    if len(head) < 13:
        return None
    strict = type == SETUP and bool(head[8] & STRICT)
    return REACTIVESOCKET_0_2 if strict or settings.served_0_2 == REACTIVESOCKET_0_2.name else RSOCKET_1_0


def _first_draft(head: bytes, settings: Settings, messages: bool) -> Dialect | None:
    """Return ReactiveSocket 0.0 if `head` is one of its frames. Raises NotSetup for an invalid SETUP."""
    # Frame Header Format: the top bit of the length is reserved.
    length = int.from_bytes(head[:4], "big") & GREATEST_31
    if not messages and length >= MAX_HEAD_BYTES and len(head) >= MAX_HEAD_BYTES:
        found = _checked(head[4:16], length, settings, REACTIVESOCKET_0_0, V00_TYPES)
        if found is not None:
            return found
    length = int.from_bytes(head[:3], "big")
    if length >= V00_HEADER_BYTES and len(head) >= 3 + V00_HEADER_BYTES:
        types = V00_TYPES if messages else (V00_SETUP,)
        return _checked(head[3:15], length, settings, REACTIVESOCKET_0_0.over_messages(), types)
    return None


def _checked(
    header: bytes, length: int, settings: Settings, dialect: Dialect, types: Collection[int]
) -> Dialect | None:
    """Return `dialect` if `header` is that of a frame of ReactiveSocket 0.0 with one of `types`."""
    version, type, stream_id = header[0], int.from_bytes(header[2:4], "big"), int.from_bytes(header[4:], "big")
    if not (type in types and version == 0) and not (type == V00_SETUP and stream_id == 0):
        return None
    if length > settings.max_setup_frame_bytes:
        opens = type == V00_SETUP and stream_id == 0
        raise _too_long(header, length, settings, dialect, Code.REJECTED_SETUP if opens else None)
    if version or (type == V00_SETUP and stream_id):
        raise NotSetup(f"SETUP has version {version} and stream {stream_id}, which must be 0", dialect)
    return dialect


def _may_be_longer(head: bytes, messages: bool) -> bool:
    """Return whether more bytes are needed to detect the dialect."""
    if len(head) >= MAX_HEAD_BYTES or (messages and 3 <= len(head) >= 3 + int.from_bytes(head[:3], "big")):
        return False
    if len(head) < 9:
        return True
    # A SETUP or RESUME without its version, or the beginning of a layout of ReactiveSocket 0.0 or 0.1.
    three = int.from_bytes(head[:3], "big") >= 10 and head[3] < 0x80 and head[7] >> 2 in TOO_LONG
    type = int.from_bytes(head[6:8], "big")
    four = type == V00_SETUP or (head[4] == 0 and (type in V00_TYPES or head[5] == 1))
    message = messages or (head[5:7] == b"\x00\x01" and not any(head[7:9]))
    return (three and len(head) < 13) or four or message


def _too_long(head: bytes, length: int, settings: Settings, dialect: Dialect, code: Code | None) -> NotSetup:
    """Return the error for a first frame that is too long; without a `code` for it, it is probably not a frame."""
    what = f"a first frame of {length} bytes exceeds max_setup_frame_bytes ({settings.max_setup_frame_bytes})"
    if code is None:
        return NotSetup(f"the first bytes are {head[:9].hex()}: not RSocket, or {what}")
    return NotSetup(what, dialect, code)
