"""The waist: the interface of sessions, which is the same for all protocols.

A session is sans-IO: it reads neither a clock nor a socket. A driver passes bytes and time to it::

    session.link_up(now)                        # a link is open
    session.receive(data, now)                  # bytes were read; call this for each read, in order
    session.receive(b"", now, 32)               # True if there are more than 32 frames: a slice of them was decoded
    session.handle_timer(now)                   # the time returned by next_timer() has come
    session.progressed(now)                     # the link has sent waiting output, or was not read
    session.link_down(now, error)               # the link broke, or was closed

After each of these calls, and after the verbs, it takes the results::

    for event in session.take_events(): ...     # what happened
    for chunk in session.take_output(): ...     # bytes to write, in order
    session.next_timer()                        # when to call handle_timer
    session.link_wanted                         # False: close the link once the output is written

All times are in seconds of one monotonic clock. Sessions have no other source of time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from .account import Account
from .errors import LocalError
from .events import Event
from .item_errors import ItemErrors
from .kinds import Kind
from .payload import Payload, PayloadRun
from .settings import Settings
from .texts import concealed

__all__ = ["SLICE", "ClientStart", "Detector", "Durable", "Run", "ServerStart", "Session", "SessionLog", "SessionLogs"]


SLICE: Final = 32
"""Frames that are decoded before the time is checked: a slice of them takes less than 0.1 ms."""


class Session(Protocol):
    """The state of one conversation with one peer, which may outlive its links.

    `receive`, `link_down` and `handle_timer` never raise because of the peer or the network, which cause events
    instead. The verbs raise :exc:`~weirpool.LocalError` if they are misused.
    """

    @property
    def link_wanted(self) -> bool:
        """True if the session needs a link. The driver opens or closes its link accordingly."""

    @property
    def account(self) -> Account:
        """The bytes that were received and not consumed."""

    @property
    def linked_at(self) -> float | None:
        """When the newest link was confirmed to work; None if there was none, or the protocol has no confirmation."""

    @property
    def excused(self) -> bool:
        """True if the reason for the end of the last link cannot recur, so that a retry uses up no budget."""

    @property
    def durable(self) -> Durable | None:
        """The session's interface for outliving its process; None if it cannot."""

    @property
    def full(self) -> bool:
        """True if the session stores too much that has not been requested: the driver should pause reading."""

    @property
    def open_streams(self) -> int:
        """The number of open streams of both sides."""

    @property
    def ignored(self) -> int | None:
        """How many frames it has ignored, most of them for streams that had ended; None if it does not count them."""

    @property
    def refused(self) -> int:
        """How many requests of the peer it has refused because of a limit, or because there was no lease for them."""

    @property
    def requests_left(self) -> int | None:
        """How many requests the peer's current lease still allows; None if requests need no lease."""

    @property
    def calls_by_streams(self) -> bool:
        """True if the protocol does not distinguish calls from streams: the peer's calls are reported as streams."""

    @property
    def counts_request(self) -> bool:
        """True if the request of an upload or a channel is the first of the items that a responder requests."""

    @property
    def item_errors(self) -> ItemErrors | None:
        """What sends and reads errors between the items of a stream; None if the protocol has none."""

    @property
    def secret(self) -> bytes:
        """The constant proof to the server that the session is ours; empty if the session cannot be resumed.

        Anyone who has it can take over the session. Store it separately from checkpoints, readable only by its owner.
        """

    def link_up(self, now: float) -> None:
        """Start using a new link; later output belongs to it."""

    def receive(self, data: bytes, now: float, frames: int = 0) -> bool:
        """Process bytes from the link. Their boundaries have no meaning.

        Args:
            data: The bytes.
            now: The time.
            frames: The number of frames to decode before this returns; 0: all that are complete.

        Returns:
            True if there is more to decode. Take the events, then call this again, with no data or with more.

        """

    def progressed(self, now: float) -> None:
        """Record that the link has sent some of its waiting output, or that it was not read until now.

        Silence proves nothing then: the peer's answers depend on output that was still waiting, or wait to be read. An
        unfinished frame could not grow.
        """

    def link_down(self, now: float, error: Exception | None) -> None:
        """Stop using the link, which is closed; `error` is the reason unless it was closed in order."""

    def next_timer(self) -> float | None:
        """Return when to call `handle_timer`, or None. The time may be too early, but never too late."""

    def handle_timer(self, now: float) -> None:
        """Perform everything that is due at `now`."""

    def take_output(self) -> list[bytes]:
        """Remove and return the bytes to write, in chunks suitable for a socket."""

    def take_events(self) -> list[Event]:
        """Remove and return the events since the last call, in order."""

    def open(
        self, kind: Kind, route: str, payload: Payload, credit: int = 0, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream and return its id.

        Args:
            kind: The kind of interaction.
            route: The peer's handler; empty for none.
            payload: The request; for UPLOAD and CHANNEL also the first item.
            credit: Items that the peer may send at once; at least 1 for STREAM and CHANNEL.
            done: For UPLOAD and CHANNEL: no items follow the first one.
            endless: For STREAM: it is not expected to complete, which some protocols distinguish.

        Raises:
            UnsupportedKind: The protocol does not support `kind`.
            LeaseMissing: The peer has not granted a lease for it; wait for `LeaseGranted`.
            SessionClosed: The session accepts no new streams.

        """

    def send(self, stream_id: int, payload: Payload, done: bool = False) -> int:
        """Send an item, which may be the last one, and return the remaining credit.

        Raises CreditExceeded if the peer has not requested it; wait for `CreditGranted`. Raises StreamClosed if our
        half is closed.
        """

    def send_run(self, stream_id: int, run: PayloadRun, start: int = 0) -> int:
        """Send as many items of `run` from index `start` as the credit allows, and return their number.

        Raises StreamClosed if our half is closed.
        """

    def complete(self, stream_id: int) -> None:
        """End our half: no more items follow. Does nothing if it is closed."""

    def fail(self, stream_id: int, error: Exception) -> None:
        """End both halves of the stream with an error.

        Only the text of an :exc:`~weirpool.ApplicationError` is sent to the peer. Other errors are sent as a fixed
        sentence, because their text may contain secrets.
        """

    def request(self, stream_id: int, count: int) -> None:
        """Request `count` more items from the peer. Does nothing if the stream is closed."""

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Cancel the peer's half. Does nothing if the stream is closed.

        Raises LocalError if the protocol does not support `metadata` here.
        """

    def credit(self, stream_id: int) -> int:
        """Return how many more items `send` accepts; 0 if the stream is closed."""

    def checkpoint(self, stream_id: int, count: int) -> bytes | None:
        """Return the data that a new process needs, with `secret`, to resume this session; None if it cannot.

        Store it together with everything received so far, then call `commit`. From the first checkpoint on, the peer
        keeps what is not committed.

        Its private part, which :func:`weirpool.checkpoints.split` separates, has the requests that the peer has not
        confirmed, with their credentials. If the parts are stored separately, store a changed private part before the
        public one.

        Args:
            stream_id: A stream of this side, from which `commit` requests more items.
            count: The number of these items, or 0.

        """

    def commit(self) -> None:
        """Confirm to the peer everything that the last `checkpoint` covers, and request its items."""

    def ask_kinds(self, kind_of: Callable[[str], int | None]) -> None:
        """Use `kind_of` to find the kind of a route's handler if a request does not have its own kind.

        The function returns None for a route without a handler, and :data:`~weirpool.kinds.ANY` for one that accepts
        every kind.
        """

    def streams(self) -> list[int]:
        """Return the ids of the open streams that this side opened."""

    def is_ours(self, stream_id: int) -> bool:
        """Return True if the id belongs to the streams that this side opens, whether the stream is open or not."""

    def push(self, metadata: bytes, stream_id: int = 0) -> None:
        """Send metadata of the connection, or of a stream in order with its items.

        Raises UnsupportedKind if the protocol does not support it.
        """

    def confirm(self) -> None:
        """Ask the server to confirm that it has accepted the set-up: `Established` or `Closed` follows.

        Raises UnsupportedKind if the protocol does not support it.
        """

    def rehandshake(self, now: float) -> None:
        """Ask the client for its metadata again: `Established` or `Closed` follows.

        Does nothing without a link, because a returning client sends its metadata anyway. Raises UnsupportedKind if the
        protocol does not support it.
        """

    def shed(self, now: float, error: Exception) -> bool:
        """Drop the largest thing that the session itself holds, and end its stream with `error`.

        Returns False if it holds nothing, or only what cannot be dropped without ending the session: an unfinished
        frame, or requests that must not start yet.
        """

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session: with `error` at once, otherwise when the open streams have ended."""


class Detector(ABC):
    """Reads the first bytes of a new link until it knows which session they belong to.

    Args:
        timeout: Seconds within which the peer must begin a session.

    Attributes:
        farewell: Bytes to write before the link is closed without a session, also after `receive` has raised.
        identity: The peer's identity, as far as its link proves it. Only the same peer may resume a session.
        locked_out: Why no session is looked up for this peer: what would resume one raises, without a farewell, so
            that an honest client tries again. Empty: it may resume.
        guessed: True after `receive` has raised because the peer named a session that is unknown.
        was_locked_out: True after `receive` has raised because of `locked_out`.
        more: True after `receive` has returned a session that has more to decode: only a slice of the bytes was.

    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._since = 0.0
        self.farewell = b""
        self.identity = b""
        self.locked_out = ""
        self.guessed = self.was_locked_out = self.more = False

    def link_up(self, now: float) -> None:
        """Start the time limit: a link was accepted."""
        self._since = now

    def next_timer(self) -> float | None:
        """Return when to close the link if it has no session yet."""
        return self._since + self._timeout

    @property
    def held(self) -> int:
        """The bytes that it holds of a first message that is not complete."""
        return 0

    @abstractmethod
    def receive(self, data: bytes, now: float) -> Session | None:
        """Return the session that the link belongs to, or None while that is unknown.

        The session has already received `link_up` and the bytes; handle its events and output next, and decode the rest
        if there is `more`. It may be a session that an earlier link began, and that this link resumes.

        Raises:
            ProtocolError: No session served here begins with these bytes. Write `farewell`, then close.

        """


class Durable(Protocol):
    """A session that can be stored on disk for the next process."""

    @property
    def kept(self) -> bool:
        """True if the next process can resume it."""

    @property
    def settled(self) -> bool:
        """True if everything sent and received is durable: nothing waits for the disk."""

    @property
    def withheld(self) -> set[int]:
        """The streams whose events wait for the disk."""

    def watch(self, watcher: Callable[[bool], None]) -> None:
        """Call `watcher` with False whenever data has become durable: take events and output then.

        A call with True means that too much output waits for the disk: add nothing until the next call with False.
        """

    def detach(self) -> None:
        """Close the session without notifying the peer, so that the next process can resume it."""


@dataclass(frozen=True, slots=True)
class ClientStart:
    """The arguments of a family for a client's session; see :func:`weirpool.protocols.client_session`."""

    __repr__ = concealed

    protocol: str
    settings: Settings
    setup: Payload
    random: bytes
    checkpoint: bytes | None
    secret: bytes
    messages: bool
    options: Mapping[str, str]
    renew: Callable[[], Payload] | None

    def checkpoint_with_secret(self) -> bytes | None:
        """Return the checkpoint, or None for a new session. Raises LocalError if its secret is missing."""
        if self.checkpoint is not None and not self.secret:
            raise LocalError("the secret of the checkpoint's session is missing; also pass the value of Peer.secret")
        return self.checkpoint


@dataclass(frozen=True, slots=True)
class ServerStart:
    """The arguments of a family for the detectors of one server; see :func:`weirpool.protocols.detectors`."""

    protocol: str
    settings: Settings
    logs: SessionLogs | None
    messages: bool
    exclusive: bool
    options: Mapping[str, str]


Run: TypeAlias = Callable[[Callable[[], None], Callable[[Exception | None], None]], None]
"""Runs work that waits for the disk: ``run(work, done)`` calls `work` in a thread that may block, then ``done(error)``
in the session's thread, with the exception of `work` or None. It may also call both immediately."""


class SessionLog(Protocol):
    """The stored records of one session, in order, by which another process can resume it.

    All methods except `close` and `remove` raise :exc:`~weirpool.SessionStoreError` if they fail. Calls do not overlap,
    but may come from different threads.
    """

    size: int
    """The log's size in bytes."""

    def append(self, record: bytes) -> None:
        """Add a record, which is durable on return."""

    def rewrite(self, record: bytes) -> None:
        """Replace all records with `record`, which is durable on return. Also writes the first record of a new log."""

    def remove(self) -> None:
        """Delete the log."""

    def close(self) -> None:
        """Close the log, so that it can be opened again."""


class SessionLogs(Protocol):
    """The logs of a server's sessions, by name.

    Attributes:
        run: Runs work that waits for the disk.

    """

    run: Run

    def __len__(self) -> int:
        """Return the number of logs, including those that are not open."""

    def create(self, name: str) -> SessionLog | None:
        """Return a new log, which exists from its first record on; None if the name is taken."""

    def open(self, name: str) -> tuple[SessionLog, list[bytes]] | None:
        """Return a log and its records; None if it does not exist or is already open.

        Raises SessionStoreError if it is damaged.
        """
