"""Detects the dialect of a link by the layout of its first bytes, not by the version that the peer claims.

Common foreign protocols are recognized too, so that the log can name them.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from ..errors import ProtocolError
from ..settings import Settings
from ..wire.rsocket.frames import FrameType
from .dialect import REACTIVESOCKET_0_0, REACTIVESOCKET_0_2, RSOCKET_1_0, Dialect

__all__ = ["detect", "is_resume"]

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
CANDIDATE: Final = bytes((0, 0, 0, 2))
"""Version 0.2 in SETUP: the bytes after its header."""
STRICT_SETUP: Final = SETUP << 10 | 0x20
V00_SETUP: Final = (0x0001,)
V00_TYPES: Final = (0x0001, 0x0002, 0x0003, *range(0x0011, 0x0017), 0x0020, 0x0021, 0x0031, 0xFFFF)
"""ReactiveSocket 0.0, Frame Types."""


def is_resume(head: bytes) -> bool:
    """Return whether the first frame is RESUME. Only valid for dialects with a 24-bit length."""
    return head[7] >> 2 == RESUME


def detect(head: bytes, settings: Settings, served: Container[str]) -> Dialect | None:
    """Return the dialect of a link that begins with `head`; None if more bytes are needed.

    Raises ProtocolError, which names what was found, if it is not one of the dialects `served`.
    """
    for start, name in FOREIGN:
        if head.startswith(start):
            raise ProtocolError(f"the first bytes are {name}, not RSocket")
    found = _three_bytes(head, settings, served) or _four_bytes(head, settings)
    if found is None and not _may_be_longer(head):
        raise ProtocolError(f"the first bytes are {head[:9].hex()}, not RSocket")
    if found is not None and found.name not in served:
        raise ProtocolError(f"the first bytes are {found.name}, which this server does not offer")
    return found


def _three_bytes(head: bytes, settings: Settings, served: Container[str]) -> Dialect | None:
    """Return the dialect of a frame with a 24-bit length, if it is one."""
    if len(head) < 9:
        return None
    length = int.from_bytes(head[:3], "big")
    stream_id = int.from_bytes(head[3:7], "big")
    if length >= 12 and _is_v00(head[3:15], V00_SETUP):
        # On message transports, all dialects have the same prefix.
        return REACTIVESOCKET_0_0.over_messages()
    type = head[7] >> 2
    if length < 6 or stream_id >> 31 or type not in TYPES or type > FrameType.EXT:
        return None
    _check_length(length, head, settings)
    if RSOCKET_1_0.name not in served:
        # Malformed frames and other versions are answered as in 0.2.
        return REACTIVESOCKET_0_2
    if type != SETUP or head[9:13] != CANDIDATE:
        return RSOCKET_1_0 if type != SETUP or length < 10 or len(head) >= 13 else None
    strict = int.from_bytes(head[7:9], "big") & STRICT_SETUP == STRICT_SETUP
    return REACTIVESOCKET_0_2 if strict or settings.served_0_2 == REACTIVESOCKET_0_2.name else RSOCKET_1_0


def _four_bytes(head: bytes, settings: Settings) -> Dialect | None:
    """Return the dialect of a frame with a 32-bit length, if it is one. Raises ProtocolError if it is draft 0.1."""
    if len(head) < MAX_HEAD_BYTES:
        return None
    length = int.from_bytes(head[:4], "big")
    if _is_v00(head[4:16], V00_TYPES) and length >= MAX_HEAD_BYTES:
        _check_length(length, head, settings)
        return REACTIVESOCKET_0_0
    if head[4:6] == b"\x00\x01" and head[8:12] == bytes(4) and length >= MAX_HEAD_BYTES:
        claimed = f"{int.from_bytes(head[12:14], 'big')}.{int.from_bytes(head[14:16], 'big')}"
        what = f"a SETUP of ReactiveSocket 0.1, which is not supported; it claims version {claimed}"
        raise ProtocolError(f"the first bytes are {what}")
    return None


def _is_v00(data: bytes, types: Container[int]) -> bool:
    """Return whether `data` is a header of ReactiveSocket 0.0 with one of `types`."""
    if len(data) != 12 or data[0] != 0 or data[4] & 0x80:
        return False
    type = int.from_bytes(data[2:4], "big")
    return type in types and (type != V00_SETUP[0] or not any(data[4:]))


def _may_be_longer(head: bytes) -> bool:
    """Return whether more bytes are needed to detect the dialect."""
    if len(head) < 9:
        return True
    # A SETUP without its version, or the beginning of a layout with a 32-bit length.
    three = int.from_bytes(head[:3], "big") >= 10 and head[3:7] == bytes(4) and head[7] >> 2 == SETUP
    four = head[4] == 0 and (int.from_bytes(head[6:8], "big") in V00_TYPES or head[5] == 1)
    message = head[3] == 0 and head[5:7] == b"\x00\x01" and not any(head[7:9])
    return (three and len(head) < 13) or ((four or message) and len(head) < MAX_HEAD_BYTES)


def _check_length(length: int, head: bytes, settings: Settings) -> None:
    """Raise ProtocolError if the first frame is too long; then it is probably not a frame."""
    limit = settings.max_setup_frame_bytes
    if length > limit:
        raise ProtocolError(
            f"the first bytes are {head[:9].hex()}: not RSocket, or its first frame of {length} bytes "
            f"exceeds max_setup_frame_bytes ({limit})"
        )
