"""The errors that Weirpool raises.

* :exc:`WeirpoolError`: the base class of all Weirpool errors.

  * :exc:`LocalError`: this side misused the API; nothing was sent.

    * :exc:`UnsupportedKind`: the protocol does not support this kind of interaction.
    * :exc:`CreditExceeded`: more items were sent than the peer requested.
    * :exc:`StreamClosed`: the stream, or its half, is closed.
    * :exc:`SessionClosed`: the session is closed, or is closing and accepts no new streams.
    * :exc:`LeaseMissing`: the peer has not granted a lease for another request.
    * :exc:`UrlError`: a URL has an unknown protocol, transport or address.

  * :exc:`ApplicationError`: the peer's handler failed; the session continues.

    * :exc:`Rejected`: the peer rejected the request without processing it.
    * :exc:`Canceled`: the peer abandoned the request, possibly in part done.
    * :exc:`Invalid`: the peer found the request invalid.

  * :exc:`Mismatch`: data does not match its type.

  * :exc:`SessionError`: the session cannot go on.

    * :exc:`ProtocolError`: the peer violated the protocol.

      * :exc:`FrameError`: bytes are not a valid frame.

    * :exc:`SetupRejected`: the server rejected the set-up.
    * :exc:`ResumeRejected`: the server no longer has the session to resume.
    * :exc:`PeerClosed`: the peer ended the session.
    * :exc:`LinkError`: the network failed.

      * :exc:`ConnectError`: no connection could be made.
      * :exc:`LinkLost`: a connection broke.
      * :exc:`KeepaliveTimeout`: the peer stopped responding.

    * :exc:`LimitExceeded`: the peer exceeded a limit.
    * :exc:`OwnerMissing`: an event of a stream had no receiver.

  * :exc:`JournalError`: the journal cannot be read or written.

    * :exc:`JournalLocked`: another collector writes to this log.
    * :exc:`JournalMismatch`: the log collects another request.
    * :exc:`JournalMissing`: there is no such journal or log, or it cannot be seen from this machine.
    * :exc:`JournalCorrupt`: a record batch is damaged.
    * :exc:`DataLost`: requested positions are gone.
    * :exc:`JournalUnavailable`: it cannot be used now, and nothing was changed; a later try may succeed.

      * :exc:`DiskFull`: the disk has no space for another batch.

    * :exc:`StoreError`: an object store cannot be reached, or refuses a request.

  * :exc:`DedupError`: the database of items that were handled cannot be used.
  * :exc:`Undelivered`: a receiver did not accept rows in time, or rejected too many of them.

  * :exc:`SessionStoreError`: the folder of a server's sessions cannot be used, or a session in it is damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Final

__all__ = [
    "ApplicationError",
    "Canceled",
    "ConnectError",
    "CreditExceeded",
    "DataLost",
    "DedupError",
    "DiskFull",
    "FrameError",
    "Invalid",
    "JournalCorrupt",
    "JournalError",
    "JournalLocked",
    "JournalMismatch",
    "JournalMissing",
    "JournalUnavailable",
    "KeepaliveTimeout",
    "LeaseMissing",
    "LimitExceeded",
    "LinkError",
    "LinkLost",
    "LocalError",
    "Mismatch",
    "OwnerMissing",
    "PeerClosed",
    "ProtocolError",
    "Rejected",
    "ResumeRejected",
    "SessionClosed",
    "SessionError",
    "SessionStoreError",
    "SetupRejected",
    "StoreError",
    "StreamClosed",
    "Undelivered",
    "UnsupportedKind",
    "UrlError",
    "WeirpoolError",
]


class WeirpoolError(Exception):
    """The base class of all Weirpool errors."""


class LocalError(WeirpoolError):
    """This side misused the API. Nothing was sent."""


class UnsupportedKind(LocalError):
    """The protocol of this connection does not support this kind of interaction."""


class CreditExceeded(LocalError):
    """More items were sent on a stream than the peer has requested."""


class StreamClosed(LocalError):
    """The stream, or the half in question, is closed."""


class SessionClosed(LocalError):
    """The session is closed, or is closing and accepts no new streams."""


class LeaseMissing(LocalError):
    """The connection uses leases, and the peer has not granted a lease for another request."""


class UrlError(LocalError):
    """A URL has an unknown protocol, transport or address."""


class ApplicationError(WeirpoolError):
    """The peer failed one stream. A handler raises it to fail its own stream.

    Args:
        code: The error code on the wire. RSocket 1.0 reserves 0x301 to 0xFFFFFFFE for applications;
            APPLICATION_ERROR (0x201) only says that the request failed. River's codes are strings.
        message: A text for people. It is sent to the peer, so it must not contain secrets.
        data: The error's bytes on the wire, if they are not just the message.
        metadata: Metadata of the error, which only ReactiveSocket 0.0 and 0.2 support.

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


# Parts of the messages of temporary rejections of requests by Weirpool. The protocols have no code for them.
_TOO_MANY: Final = "max_streams ("
_NO_LEASE: Final = "there is no lease for this request"
_LATER: Final = "try again later"
_TOO_FAST: Final = re.compile(r"max_open_rate \((\d{1,9})/s\)")


class Rejected(ApplicationError):
    """The peer rejected the request without processing it: it is safe to retry."""

    CLOSING: ClassVar[str] = "the connection is closing"
    """The message, or its beginning, if the peer is closing. The protocols have no code for it."""

    def __init__(
        self, code: int | str = 0x202, message: str = "", data: bytes | None = None, metadata: bytes | None = None
    ) -> None:
        super().__init__(code, message, data, metadata)

    @property
    def closing(self) -> bool:
        """True if the peer accepts no requests because it is closing: a retry on another connection may succeed."""
        return self.message.startswith(self.CLOSING)

    @property
    def temporary(self) -> bool:
        """True if the peer has too many open streams, or they come too fast, or a lease expired on the way.

        Or it says so, because it has no resources left for this client. A later retry may succeed.
        """
        return self.too_many or self.open_rate > 0 or _NO_LEASE in self.message or _LATER in self.message

    @property
    def too_many(self) -> bool:
        """True if the peer has too many open streams of this side."""
        return _TOO_MANY in self.message

    @property
    def open_rate(self) -> int:
        """How many streams the peer lets this side open per second if there were more; otherwise 0."""
        found = _TOO_FAST.search(self.message)
        return int(found[1]) if found else 0


class Canceled(ApplicationError):
    """The peer abandoned the request; it may have done part of it."""

    def __init__(
        self, code: int | str = 0x203, message: str = "", data: bytes | None = None, metadata: bytes | None = None
    ) -> None:
        super().__init__(code, message, data, metadata)


class Invalid(ApplicationError):
    """The peer found the request invalid."""

    def __init__(
        self, code: int | str = 0x204, message: str = "", data: bytes | None = None, metadata: bytes | None = None
    ) -> None:
        super().__init__(code, message, data, metadata)


class Mismatch(WeirpoolError):
    """Data does not match its type.

    A typed peer raises it for data that it receives. A typed handler answers invalid data with :exc:`Invalid`.

    Args:
        message: The problem, if it concerns the data as a whole.
        problems: Otherwise pairs of a JSON pointer (empty for the whole) and the problem there.
        total: The number of problems, if these are only the first ones.

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


class SessionError(WeirpoolError):
    """The session cannot continue; all its streams fail with this error.

    Args:
        message: What is wrong, where, and what to do about it.
        code: The error code on the wire, if the protocol has one.

    """

    def __init__(self, message: str, code: int | str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class ProtocolError(SessionError):
    """The peer violated the protocol."""


class FrameError(ProtocolError):
    """Bytes are not a valid frame of this dialect.

    Args:
        message: What is wrong.
        offset: The byte of the frame, counted from 0 after the length prefix.
        ignorable: True if the frame's I flag, or the dialect, lets the receiver skip it.

    """

    def __init__(self, message: str, offset: int = 0, *, ignorable: bool = False) -> None:
        super().__init__(message)
        self.offset = offset
        self.ignorable = ignorable

    def __str__(self) -> str:
        return f"byte {self.offset}: {self.message}"


_FULL: Final = "the server is full"
_CLOSES: Final = "the server closes the connection"
_UNDECIDED: Final = "the acceptor took longer than acceptor_timeout"
_TEMPORARY: Final = (
    _FULL,
    _CLOSES,
    # reactive-streams-io: the server has waited too long.
    "no hello",
    # The RSocket family: SETUP did not arrive in time.
    "no whole first frame came within",
    _UNDECIDED,
)
"""Parts of the messages of temporary rejections by Weirpool, because the protocols have no code for them."""


class SetupRejected(SessionError):
    """The server rejected the set-up of this session."""

    @property
    def temporary(self) -> bool:
        """True if the server has reached a limit, is closing, or read or checked it too late: a retry may succeed."""
        return any(sign in self.message for sign in _TEMPORARY)

    @property
    def closing(self) -> bool:
        """True if the server accepts no sessions because it is closing. No request of the session was processed."""
        return _CLOSES in self.message

    @property
    def undecided(self) -> bool:
        """True if the server has not decided about the set-up in time."""
        return _UNDECIDED in self.message

    @classmethod
    def late(cls, timeout: float, code: int | str | None = None) -> SetupRejected:
        """Return the rejection of a server whose acceptor has not decided within `timeout` seconds."""
        return cls(f"{_UNDECIDED} ({timeout:g} s)", code)

    @classmethod
    def closes(cls, code: int | str | None = None) -> SetupRejected:
        """Return the rejection of a server that is closing."""
        return cls(_CLOSES, code)

    @classmethod
    def full(cls, reason: str, code: int | str | None = None) -> SetupRejected:
        """Return the rejection of a server that has reached a limit; `reason` names it."""
        return cls(f"{_FULL}: {reason}", code)


class ResumeRejected(SessionError):
    """The server cannot resume this session: the data that it still held is lost."""


class PeerClosed(SessionError):
    """The peer ended the session."""


class LinkError(SessionError):
    """The network failed."""


class ConnectError(LinkError):
    """No connection could be made."""


class LinkLost(LinkError):
    """A connection broke, and the session ended with it."""


class KeepaliveTimeout(LinkError):
    """The peer was silent for longer than the keepalive lifetime."""


class LimitExceeded(SessionError):
    """The peer exceeded a limit in :class:`weirpool.Settings`."""


class OwnerMissing(SessionError):
    """An event of a stream had no receiver: a defect of this side. The session ends, so that the loss is noticed."""


class JournalError(WeirpoolError):
    """The journal cannot be read or written."""


class JournalLocked(JournalError):
    """Another process writes to this log."""


class JournalMismatch(JournalError):
    """This is a different log: it collects another request, or was created again."""


class JournalMissing(JournalError):
    """There is no such journal or log, or it cannot be seen from this machine."""


class JournalCorrupt(JournalError):
    """A record batch in the middle of a log differs from what was written."""


class DataLost(JournalError):
    """Requested positions are no longer in the journal."""


class JournalUnavailable(JournalError):
    """The journal cannot be used now, because the system has no resources left; a later try may succeed."""


class DiskFull(JournalUnavailable):
    """The disk has no space for another batch."""


class StoreError(JournalError):
    """An object store cannot be reached, or refuses a request; a later retry may succeed."""


class DedupError(WeirpoolError):
    """The database of the items that were handled cannot be used."""


class Undelivered(WeirpoolError):
    """A receiver did not accept rows in time, or rejected too many of them. It may have stored some."""


class SessionStoreError(WeirpoolError):
    """The folder of a server's sessions cannot be used, or a session in it is damaged."""
