"""SETUP: makes a client's set-up, and checks it on a server."""

from __future__ import annotations

from typing import Final

from ..errors import SetupRejected
from ..events import Established
from ..payload import Payload
from ..settings import Settings
from ..wire.rsocket.frames import LEASE, RESUME, STRICT, Frame, SetupFrame, type_name
from .codes import Code
from .dialect import Dialect
from .extensions.mimes import is_known

__all__ = ["MAX_TOKEN_BYTES", "MIN_TOKEN_BYTES", "Handshake", "check", "established", "setup_frame"]

CANDIDATE: Final = (0, 2)
MAX_TOKEN_BYTES: Final = 1_024
"""Common peers use tokens of 16 bytes or the 36 characters of a UUID; the length field allows 65,535 bytes."""
MIN_TOKEN_BYTES: Final = 8
"""The token is all that RESUME requires, so it must not be easy to guess. Common peers use at least 16 bytes."""


class Handshake:
    """The set-up of a client that can resume, until the server has confirmed it.

    Attributes:
        restart: The server does not know the session, so the next link begins with SETUP, not with RESUME.
        refusal: Why the server rejected a repeated SETUP; it may have received the first one.

    """

    __slots__ = ("refusal", "restart")

    def __init__(self) -> None:
        self.restart = False
        self.refusal: SetupRejected | None = None


def setup_frame(dialect: Dialect, settings: Settings, payload: Payload, token: bytes | None) -> SetupFrame:
    """Return a client's SETUP."""
    major, minor = dialect.version
    flags = LEASE if settings.lease else 0
    if settings.strict:
        flags |= STRICT
    return SetupFrame(
        flags,
        major=major,
        minor=minor,
        keepalive_ms=max(1, round(settings.keepalive_interval * 1000)),
        lifetime_ms=max(1, round(settings.keepalive_lifetime * 1000)),
        token=token,
        metadata_mime=(settings.metadata_mime or dialect.metadata_mime).encode(),
        data_mime=settings.data_mime.encode(),
        metadata=payload.metadata,
        data=payload.data,
    )


def check(frame: Frame, dialect: Dialect, *, resumable: bool, leases: bool) -> SetupFrame:
    """Return `frame` if it is an acceptable SETUP.

    Args:
        frame: The first frame.
        dialect: The detected dialect.
        resumable: Whether this server resumes sessions.
        leases: Whether this server grants leases.

    Raises:
        SetupRejected: It is not acceptable. The error has the code for the ERROR frame.

    """
    # RSocket 1.0, Connection Establishment: the first frame is SETUP or RESUME, on stream 0.
    if not isinstance(frame, SetupFrame) or frame.stream_id != 0:
        name = type_name(frame.type)
        raise SetupRejected(f"the first frame is {name} on stream {frame.stream_id}, not SETUP", Code.INVALID_SETUP)
    # The 1.0 candidate used version 0.2, and some peers still do.
    if (frame.major, frame.minor) not in (dialect.version, CANDIDATE):
        raise SetupRejected(f"version {frame.major}.{frame.minor} is not supported here", Code.INVALID_SETUP)
    # RSocket 1.0, SETUP Frame: both MUST be more than 0.
    if dialect.keepalive and (frame.keepalive_ms <= 0 or frame.lifetime_ms <= 0):
        raise SetupRejected("keepalive interval and lifetime must be more than 0", Code.INVALID_SETUP)
    # RSocket 1.0, SETUP Frame: a server that cannot resume MUST reject.
    if frame.flags & RESUME and not resumable:
        raise SetupRejected("this server does not resume sessions", Code.REJECTED_SETUP)
    # THREATS 27, 28: the server stores each session's token, and whoever guesses a token takes the session over.
    if frame.token is not None and not MIN_TOKEN_BYTES <= len(frame.token) <= MAX_TOKEN_BYTES:
        limits = f"it must have {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} bytes"
        raise SetupRejected(f"a resume token of {len(frame.token)} bytes is refused; {limits}", Code.REJECTED_SETUP)
    if frame.flags & LEASE and not leases:
        raise SetupRejected("this server does not grant leases", Code.REJECTED_SETUP)
    return frame


def established(setup: SetupFrame, settings: Settings, dialect: Dialect) -> Established:
    """Return a server's event for `setup`."""
    metadata_mime = setup.metadata_mime.decode("ascii", "replace")
    data_mime = setup.data_mime.decode("ascii", "replace")
    # ReactiveSocket 0.2, SETUP Frame: the S flag, which RSocket 1.0 does not have.
    strict = not dialect.half_close and bool(setup.flags & STRICT)
    understood = all(is_known(mime) or mime == settings.data_mime for mime in (metadata_mime, data_mime))
    return Established(Payload(setup.data, setup.metadata), metadata_mime, data_mime, strict, understood)
