"""The errors that Penstock raises.

* :exc:`PenstockError`: the root; catch it to catch everything of ours.

  * :exc:`LocalError`: this side used the API wrongly; nothing was sent.

    * :exc:`UnsupportedKind`: the protocol cannot carry this kind of interaction.
    * :exc:`CreditExceeded`: more items were sent than the other side asked for.
    * :exc:`StreamClosed`: the stream, or its half, is over.
    * :exc:`SessionClosed`: the session is over, or is closing and takes no new streams.
    * :exc:`LeaseMissing`: the other side has given no leave for another request.
    * :exc:`UrlError`: a URL that names no protocol, transport or place that we know.

  * :exc:`ApplicationError`: the other side's handler failed; the session lives on.

    * :exc:`Rejected`: it refused the request before it did anything.
    * :exc:`Canceled`: it gave the request up, maybe half done.
    * :exc:`Invalid`: it says that the request was not a valid one.

  * :exc:`Mismatch`: data is not of the type that it was to have.

  * :exc:`SessionError`: the session cannot go on.

    * :exc:`ProtocolError`: the peer broke the protocol.

      * :exc:`FrameError`: bytes that are no frame.

    * :exc:`SetupRejected`: the server refused our set-up.
    * :exc:`ResumeRejected`: the server no longer holds the session that we wanted to resume.
    * :exc:`PeerClosed`: the peer ended the session.
    * :exc:`LinkError`: the network failed us.

      * :exc:`ConnectError`: no connection could be made.
      * :exc:`LinkLost`: a connection broke.
      * :exc:`KeepaliveTimeout`: the peer fell silent.

    * :exc:`LimitExceeded`: the peer ran into one of our limits.
    * :exc:`OwnerMissing`: an event of a stream found nobody to receive it.

  * :exc:`JournalError`: the journal cannot be read or written.

    * :exc:`JournalLocked`: another collector writes to this log.
    * :exc:`JournalMismatch`: the log collects another request.
    * :exc:`JournalMissing`: there is no such journal or log, or it cannot be seen from here.
    * :exc:`JournalCorrupt`: a record batch is damaged.
    * :exc:`DataLost`: positions that were asked for are gone.
    * :exc:`DiskFull`: there is no room for another batch.

  * :exc:`SessionStoreError`: the folder of a server's sessions cannot be used, or what is kept of one is damaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = [
    "ApplicationError",
    "Canceled",
    "ConnectError",
    "CreditExceeded",
    "DataLost",
    "DiskFull",
    "FrameError",
    "Invalid",
    "JournalCorrupt",
    "JournalError",
    "JournalLocked",
    "JournalMismatch",
    "JournalMissing",
    "KeepaliveTimeout",
    "LeaseMissing",
    "LimitExceeded",
    "LinkError",
    "LinkLost",
    "LocalError",
    "Mismatch",
    "OwnerMissing",
    "PeerClosed",
    "PenstockError",
    "ProtocolError",
    "Rejected",
    "ResumeRejected",
    "SessionClosed",
    "SessionError",
    "SessionStoreError",
    "SetupRejected",
    "StreamClosed",
    "UnsupportedKind",
    "UrlError",
]


class PenstockError(Exception):
    """The root of every error that Penstock raises."""


class LocalError(PenstockError):
    """This side used the API wrongly. Nothing was sent."""


class UnsupportedKind(LocalError):
    """The protocol of this connection cannot carry this kind of interaction."""


class CreditExceeded(LocalError):
    """More items were given to a stream than the other side has asked for."""


class StreamClosed(LocalError):
    """The stream, or the half of it that was to be used, is over."""


class SessionClosed(LocalError):
    """The session is over, or it is closing and takes no new streams."""


class LeaseMissing(LocalError):
    """The connection works with leases, and the other side has given no leave for another request."""


class UrlError(LocalError):
    """A URL that names no protocol, transport or place that we know."""


class ApplicationError(PenstockError):
    """The other side failed one stream; or, raised by a handler, this side does.

    Args:
        code: The wire's error code. RSocket 1.0 leaves 0x301 to 0xFFFFFFFE to applications;
            APPLICATION_ERROR (0x201) says no more than that it failed. River has strings.
        message: A text for people. It travels, so it must hold no secret.
        data: The raw bytes of the error as they travelled, when they are not just the message.
        metadata: Of the error; ReactiveSocket 0.0 and 0.2 alone carry it.

    """

    def __init__(
        self,
        code: int | str = 0x201,
        message: str = "",
        data: bytes | None = None,
        metadata: bytes | None = None,
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.data = message.encode() if data is None else data
        self.metadata = metadata

    def __str__(self) -> str:
        code = f"0x{self.code:03X}" if isinstance(self.code, int) else self.code
        return f"[{code}] {self.message}" if self.message else f"[{code}]"


class Rejected(ApplicationError):
    """The other side refused the request and did nothing with it: it is safe to try again."""

    def __init__(
        self, code: int | str = 0x202, message: str = "", data: bytes | None = None, metadata: bytes | None = None
    ) -> None:
        super().__init__(code, message, data, metadata)


class Canceled(ApplicationError):
    """The other side gave the request up; it may have done part of it."""

    def __init__(
        self, code: int | str = 0x203, message: str = "", data: bytes | None = None, metadata: bytes | None = None
    ) -> None:
        super().__init__(code, message, data, metadata)


class Invalid(ApplicationError):
    """The other side says that the request was not valid."""

    def __init__(
        self, code: int | str = 0x204, message: str = "", data: bytes | None = None, metadata: bytes | None = None
    ) -> None:
        super().__init__(code, message, data, metadata)


class Mismatch(PenstockError):
    """Data is not of the type that it was to have.

    What a peer sends to a typed handler fails there as :exc:`Invalid`; what a typed peer gets back, as this.

    Args:
        message: What is wrong with all of it, where that cannot be told of a part.
        problems: Else pairs of where (a JSON pointer; empty for the whole) and what is wrong there.
        total: How many there are, where these are only the first.

    Attributes:
        problems: At least one of these pairs.
        total: As above.

    """

    def __init__(self, message: str = "", problems: Iterable[tuple[str, str]] = (), total: int | None = None) -> None:
        self.problems = list(problems) or [("", message)]
        self.total = len(self.problems) if total is None else total
        super().__init__(message, self.problems, self.total)

    def __str__(self) -> str:
        more = f", and {self.total - len(self.problems)} more" if self.total > len(self.problems) else ""
        return "; ".join(f"{path or 'data'}: {message}" for path, message in self.problems) + more


class SessionError(PenstockError):
    """The session cannot go on; every stream of it fails with this error.

    Args:
        message: What is wrong, where, and what to do about it.
        code: The error code that travels, where the protocol has one.

    """

    def __init__(self, message: str, code: int | str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class ProtocolError(SessionError):
    """The peer broke the protocol."""


class FrameError(ProtocolError):
    """Bytes that are no frame of this dialect.

    Args:
        message: What is wrong with them.
        offset: At which byte of the frame, counted from 0 behind the length prefix.
        ignorable: Whether the frame's I flag, or the dialect, lets the receiver skip it.

    """

    def __init__(self, message: str, offset: int = 0, *, ignorable: bool = False) -> None:
        super().__init__(message)
        self.offset = offset
        self.ignorable = ignorable

    def __str__(self) -> str:
        return f"byte {self.offset}: {self.message}"


_FULL: Final = "the server is full"
_TEMPORARY: Final = (
    _FULL,
    # reactive-streams-io: the server is closing, or has waited too long.
    "the server closes the connection",
    "the peer said no hello within",
    # The RSocket family: SETUP was slower than the server's patience.
    "no whole first frame came within",
)
"""What a temporary refusal of Penstock's says: the protocols have no code for it."""


class SetupRejected(SessionError):
    """The server refused the set-up of this session.

    Attributes:
        temporary: The server has no room at the moment, is closing, or our set-up came too late: another try may help.

    """

    @property
    def temporary(self) -> bool:
        """Whether the refusal has nothing to do with what we asked for, and passes."""
        return any(sign in self.message for sign in _TEMPORARY)

    @classmethod
    def full(cls, reason: str, code: int | str | None = None) -> SetupRejected:
        """Return the refusal of a server that has no room; `reason` names the limit."""
        return cls(f"{_FULL}: {reason}", code)


class ResumeRejected(SessionError):
    """The server will not resume this session: what it still held for us is lost."""


class PeerClosed(SessionError):
    """The peer ended the session."""


class LinkError(SessionError):
    """The network failed us."""


class ConnectError(LinkError):
    """No connection could be made."""


class LinkLost(LinkError):
    """A connection broke, and the session cannot outlive it."""


class KeepaliveTimeout(LinkError):
    """The peer fell silent for longer than the session's lifetime allows."""


class LimitExceeded(SessionError):
    """The peer ran into one of the limits in :class:`penstock.Settings`."""


class OwnerMissing(SessionError):
    """An event of a stream found nobody to receive it: a defect of this side. The session ends rather than lose it."""


class JournalError(PenstockError):
    """The journal cannot be read or written."""


class JournalLocked(JournalError):
    """Another process writes to this log."""


class JournalMismatch(JournalError):
    """This log is not the one that is meant: it collects another request, or was created again."""


class JournalMissing(JournalError):
    """There is no such journal or log, or it cannot be seen from this machine."""


class JournalCorrupt(JournalError):
    """A record batch in the middle of a log does not hold what was written."""


class DataLost(JournalError):
    """Positions that were asked for are no longer in the journal."""


class DiskFull(JournalError):
    """The disk has no room for another batch."""


class SessionStoreError(PenstockError):
    """The folder in which a server keeps its sessions cannot be used, or what it holds of one is damaged."""
