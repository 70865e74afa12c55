"""The waist: what every session offers, whatever protocol it speaks.

A session is sans-IO: it neither reads a clock nor a socket. A driver moves bytes and time, like this::

    session.link_up(now)                        # a link is open
    session.receive(data, now)                  # bytes came in: call it for each piece, in order
    session.handle_timer(now)                   # the time that next_timer() named has come
    session.progressed(now)                     # output that had waited in the link has left it
    session.link_down(now, error)               # the link broke, or was closed

and after each of these, and after the verbs, it looks at what the session has to say::

    for event in session.take_events(): ...     # what happened
    for chunk in session.take_output(): ...     # bytes to write, in order
    session.next_timer()                        # when to call handle_timer
    session.link_wanted                         # False: close the link once the output is written

All times are seconds of one monotonic clock. Below `transports` nothing else knows the time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from .errors import LocalError
from .events import Event
from .kinds import Kind
from .payload import Payload, PayloadRun
from .settings import Settings

__all__ = ["ClientStart", "Detector", "Durable", "Run", "ServerStart", "Session", "SessionLog", "SessionLogs"]


class Session(Protocol):
    """The state of one conversation with one peer; it may outlive the links that carry it.

    `receive`, `link_down` and `handle_timer` never raise for what a peer or the network did: that becomes
    events. The verbs raise :exc:`~penstock.LocalError` when they are misused.
    """

    @property
    def link_wanted(self) -> bool:
        """Whether the session has use for a link: the driver closes the link, or opens one, accordingly."""

    @property
    def linked_at(self) -> float | None:
        """When the newest link was found good; None: none was yet, or the protocol does not tell."""

    @property
    def excused(self) -> bool:
        """Whether the last link ended for a reason that does not come again: another try costs nothing."""

    @property
    def durable(self) -> Durable | None:
        """The session as one that may outlive its process; None: it cannot."""

    @property
    def full(self) -> bool:
        """Whether the session holds so much that nobody has asked for that nothing should be read for now."""

    @property
    def open_streams(self) -> int:
        """How many streams are open, of both sides."""

    @property
    def calls_by_streams(self) -> bool:
        """Whether the protocol has one word for calls and streams: the peer's calls come as streams."""

    @property
    def secret(self) -> bytes:
        """What proves to the server whose session this is, and never changes; empty where it cannot be resumed.

        Whoever has it can take the session over. Keep it where only its owner can read it, apart from checkpoints.
        """

    def link_up(self, now: float) -> None:
        """A link is open; output made from now on belongs on it."""

    def receive(self, data: bytes, now: float) -> None:
        """Take what the link brought. It may be cut anywhere."""

    def progressed(self, now: float) -> None:
        """Note that output which had waited in the link has left it.

        It is as good a sign of the peer's life as input: what the peer is to answer waits behind that output.
        """

    def link_down(self, now: float, error: Exception | None) -> None:
        """The link is gone; `error` says why unless it ended in order."""

    def next_timer(self) -> float | None:
        """Return when to call `handle_timer`, or None. It may be early, never late."""

    def handle_timer(self, now: float) -> None:
        """Do what is due by now."""

    def take_output(self) -> list[bytes]:
        """Return the bytes to write, in pieces fit for a socket, and forget them."""

    def take_events(self) -> list[Event]:
        """Return what happened since the last call, in order, and forget it."""

    def open(
        self, kind: Kind, route: str, payload: Payload, credit: int = 0, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream and return its id.

        Args:
            kind: What travels each way.
            route: The handler on the other side; empty for none.
            payload: The request; for UPLOAD and CHANNEL also the first item.
            credit: Items that the peer may send at once, at least 1 for STREAM and CHANNEL.
            done: For UPLOAD and CHANNEL: there are no further items.
            endless: For STREAM: nobody expects it to complete; some protocols have a word of their own for that.

        Raises:
            UnsupportedKind: The protocol cannot carry `kind`.
            LeaseMissing: The peer has granted no lease for it yet; wait for `LeaseGranted`.
            SessionClosed: The session takes no new streams.

        """

    def send(self, stream_id: int, payload: Payload, done: bool = False) -> int:
        """Send an item, which may be the last, and return the credit that is left.

        Raises CreditExceeded if the peer has not asked for it yet: wait for `CreditGranted`. Raises StreamClosed if our
        half is over.
        """

    def send_run(self, stream_id: int, run: PayloadRun, start: int = 0) -> int:
        """Send the items of `run` from index `start`, as far as credit goes; return how many that were.

        Raises StreamClosed if our half is over.
        """

    def complete(self, stream_id: int) -> None:
        """End our half: no more items come. A half that is over already is left alone."""

    def fail(self, stream_id: int, error: Exception) -> None:
        """End the stream, both halves, with an error.

        Only an :exc:`~penstock.ApplicationError` tells the peer its text; any other error travels as
        one fixed sentence, because its text may hold secrets.
        """

    def request(self, stream_id: int, count: int) -> None:
        """Ask the peer for `count` more items. A stream that is over is left alone."""

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Want no more items. A stream that is over is left alone.

        Raises LocalError if there is `metadata`, and the protocol has no room for it there.
        """

    def credit(self, stream_id: int) -> int:
        """Return how many items `send` may still take; 0 for a stream that is over."""

    def checkpoint(self, stream_id: int, count: int) -> bytes | None:
        """Return what a new process needs, with `secret`, to go on with this session; None where the protocol cannot.

        Store it together with everything that was received so far, then call `commit`. From the first
        checkpoint on, the peer is told to keep whatever is not committed.

        It holds the requests that the peer has not confirmed, with their credentials: those are in its private part,
        which :func:`penstock.checkpoints.split` sets apart. Where the parts are stored apart, store a private part that
        has changed before the public one.

        Args:
            stream_id: A stream of ours, of which `commit` will request more.
            count: How many items; 0 for none.

        """

    def commit(self) -> None:
        """Tell the peer that what the last `checkpoint` covers is safe, and request what it promised."""

    def ask_kinds(self, kind_of: Callable[[str], Kind | None]) -> None:
        """Ask `kind_of` what kind of handler a route has, where a request does not say what it is itself.

        It returns None for a route that nobody answers.
        """

    def streams(self) -> list[int]:
        """Return the streams that this side opened and that are still open."""

    def is_ours(self, stream_id: int) -> bool:
        """Return whether a stream of that number is one that this side opens, be it open or not."""

    def push(self, metadata: bytes, stream_id: int = 0) -> None:
        """Send metadata that belongs to the whole connection, or to a stream, in order with its items.

        Raises UnsupportedKind if the protocol has no such thing.
        """

    def confirm(self) -> None:
        """Ask the server for a sign that it has accepted the set-up: `Established` follows, or `Closed`.

        Raises UnsupportedKind if the protocol has no way to ask.
        """

    def rehandshake(self, now: float) -> None:
        """Ask the client for its metadata again: `Established` follows, or `Closed`.

        Without a link nothing is asked: a client that returns sends its metadata in any case. Raises UnsupportedKind if
        the protocol has no way to ask.
        """

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session: at once with `error`, else when the streams that are open have ended."""


class Detector(ABC):
    """Reads the first bytes of a new link until it knows which session they belong to.

    Args:
        timeout: Seconds within which the peer must begin a session.

    Attributes:
        farewell: Bytes to write before the link is closed without a session, also after `receive` has raised.
        identity: The peer's identity, as far as its link proves it. Only the same peer may resume a session.

    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._since = 0.0
        self.farewell = b""
        self.identity = b""

    def link_up(self, now: float) -> None:
        """Start the time limit: a link was accepted."""
        self._since = now

    def next_timer(self) -> float | None:
        """Return when to close the link if it has no session yet."""
        return self._since + self._timeout

    @abstractmethod
    def receive(self, data: bytes, now: float) -> Session | None:
        """Return the session that the link belongs to, or None while that is unknown.

        The session has already received `link_up` and the bytes; handle its events and output next. It may be a
        session that an earlier link began, and that this link resumes.

        Raises:
            ProtocolError: No session served here begins with these bytes. Write `farewell`, then close.

        """


class Durable(Protocol):
    """A session that may be kept on disk for the next process."""

    @property
    def kept(self) -> bool:
        """Whether the next process can go on with it."""

    @property
    def settled(self) -> bool:
        """Whether everything sent and received is durable: nothing waits for the disk."""

    @property
    def withheld(self) -> set[int]:
        """The streams whose events wait for the disk."""

    def watch(self, watcher: Callable[[bool], None]) -> None:
        """Call `watcher` with False whenever something has become durable: look for events and output then.

        A call with True says that too much output waits for the disk: add nothing until the next call with False.
        """

    def detach(self) -> None:
        """Leave a session that is kept to the next process. The peer is told nothing."""


@dataclass(frozen=True, slots=True)
class ClientStart:
    """What a family makes a client's session of; see :func:`penstock.protocols.client_session`."""

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
        """Return the checkpoint; None for a new session. Raises LocalError if there is one, and no secret."""
        if self.checkpoint is not None and not self.secret:
            raise LocalError("a checkpoint without the secret of its session; pass what Peer.secret was, too")
        return self.checkpoint


@dataclass(frozen=True, slots=True)
class ServerStart:
    """What a family makes the detectors of one server of; see :func:`penstock.protocols.detectors`."""

    protocol: str
    settings: Settings
    logs: SessionLogs | None
    messages: bool
    options: Mapping[str, str]


Run: TypeAlias = Callable[[Callable[[], None], Callable[[Exception | None], None]], None]
"""Does work that waits for the disk: ``run(work, done)`` calls `work` where it blocks nothing, and then ``done(error)``
where the session lives, with what `work` raised, or None. It may also do both at once."""


class SessionLog(Protocol):
    """What is kept of one session, so that another process can go on with it: records, in order.

    All methods but `close` and `remove` raise :exc:`~penstock.SessionStoreError` when they fail. One is called at a
    time, but not always by the same thread.
    """

    size: int
    """Bytes that it takes."""

    def append(self, record: bytes) -> None:
        """Add a record. It is durable when this returns."""

    def rewrite(self, record: bytes) -> None:
        """Put `record` in the place of all that there is, or begin with it. It is durable when this returns."""

    def remove(self) -> None:
        """Forget all of it."""

    def close(self) -> None:
        """Leave it for whoever opens it next."""


class SessionLogs(Protocol):
    """The logs of a server's sessions, by name.

    Attributes:
        run: Does what waits for the disk.

    """

    run: Run

    def __len__(self) -> int:
        """Return how many there are, those included that nobody has opened."""

    def create(self, name: str) -> SessionLog | None:
        """Return a new log, which is there from its first record on; None if the name is taken."""

    def open(self, name: str) -> tuple[SessionLog, list[bytes]] | None:
        """Return a log and its records; None if there is none, or somebody has opened it.

        Raises SessionStoreError if it is damaged.
        """
