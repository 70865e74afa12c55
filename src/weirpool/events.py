"""Events that a session reports to its user. Their names are past participles.

A driver takes them from :meth:`weirpool.session.Session.take_events`, in order.
"""

from __future__ import annotations

from .kinds import Kind
from .payload import Payload, PayloadRun

__all__ = [
    "Canceled",
    "Closed",
    "Completed",
    "CreditGranted",
    "Draining",
    "Established",
    "Event",
    "Failed",
    "ItemReceived",
    "LeaseGranted",
    "MetadataPushed",
    "Requested",
    "RunReceived",
    "Unlinked",
    "item_received",
    "requested",
    "run_received",
]


class Event:
    """The base class of all events.

    Attributes:
        stream_id: The stream that the event belongs to; 0 for the whole session.

    """

    __slots__ = ("stream_id",)

    def __init__(self, stream_id: int = 0) -> None:
        self.stream_id = stream_id

    def __repr__(self) -> str:
        names = [name for cls in reversed(type(self).__mro__) for name in getattr(cls, "__slots__", ())]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class Established(Event):
    """The session is set up. On a server, the event has the client's set-up.

    Attributes:
        payload: The set-up's payload.
        metadata_mime: The MIME type of the connection's metadata.
        data_mime: The MIME type of the connection's data.
        strict: The client asks to be rejected if the server does not understand all of this.
        understood: Both MIME types are well-known, or equal to those in the settings.

    """

    __slots__ = ("data_mime", "metadata_mime", "payload", "strict", "understood")

    def __init__(
        self, payload: Payload, metadata_mime: str, data_mime: str, strict: bool = False, understood: bool = True
    ) -> None:
        self.stream_id = 0
        self.payload = payload
        self.metadata_mime = metadata_mime
        self.data_mime = data_mime
        self.strict = strict
        self.understood = understood


class Requested(Event):
    """The peer opened a stream. Answer with `send`, `complete` or `fail`, or `request` its items.

    Attributes:
        kind: Never UPLOAD: on the wire that is a CHANNEL.
        route: The requested handler; empty if the request names none.
        payload: The request itself; for a CHANNEL also its first item.
        credit: Items that this side may send at once.
        done: The requester's half is complete: no items follow the first one.

    """

    __slots__ = ("credit", "done", "kind", "payload", "route")

    def __init__(self, stream_id: int, kind: Kind, route: str, payload: Payload, credit: int, done: bool) -> None:
        self.stream_id = stream_id
        self.kind = kind
        self.route = route
        self.payload = payload
        self.credit = credit
        self.done = done


class ItemReceived(Event):
    """One item arrived.

    Attributes:
        payload: The item.
        done: It is the last one: no `Completed` follows.

    """

    __slots__ = ("done", "payload")

    def __init__(self, stream_id: int, payload: Payload, done: bool) -> None:
        self.stream_id = stream_id
        self.payload = payload
        self.done = done


class RunReceived(Event):
    """Several items of one stream arrived together."""

    __slots__ = ("run",)

    def __init__(self, stream_id: int, run: PayloadRun) -> None:
        self.stream_id = stream_id
        self.run = run


def requested(stream_id: int, kind: Kind, route: str, payload: Payload, credit: int, done: bool) -> Requested:
    """Return a :class:`Requested`. Compiled code calls this faster than the class."""
    event = Requested.__new__(Requested)
    event.stream_id = stream_id
    event.kind = kind
    event.route = route
    event.payload = payload
    event.credit = credit
    event.done = done
    return event


def item_received(stream_id: int, payload: Payload, done: bool) -> ItemReceived:
    """Return an :class:`ItemReceived`. Compiled code calls this faster than the class."""
    event = ItemReceived.__new__(ItemReceived)
    event.stream_id = stream_id
    event.payload = payload
    event.done = done
    return event


def run_received(stream_id: int, run: PayloadRun) -> RunReceived:
    """Return a :class:`RunReceived`. Compiled code calls this faster than the class."""
    event = RunReceived.__new__(RunReceived)
    event.stream_id = stream_id
    event.run = run
    return event


class Completed(Event):
    """The peer's half is complete: it sends no more items."""

    __slots__ = ()


class Failed(Event):
    """Both halves of the stream ended with an error."""

    __slots__ = ("error",)

    def __init__(self, stream_id: int, error: Exception) -> None:
        self.stream_id = stream_id
        self.error = error


class Canceled(Event):
    """The peer canceled, and wants no more items from this side.

    Attributes:
        done: The whole stream has ended; otherwise only this side's half.
        metadata: The peer's metadata for it, if the protocol supports that.

    """

    __slots__ = ("done", "metadata")

    def __init__(self, stream_id: int, done: bool, metadata: bytes | None = None) -> None:
        self.stream_id = stream_id
        self.done = done
        self.metadata = metadata


class CreditGranted(Event):
    """The peer requested `count` more items."""

    __slots__ = ("count",)

    def __init__(self, stream_id: int, count: int) -> None:
        self.stream_id = stream_id
        self.count = count


class LeaseGranted(Event):
    """The peer granted a lease for `requests` requests within `ttl` seconds, which replaces any earlier lease."""

    __slots__ = ("metadata", "requests", "ttl")

    def __init__(self, requests: int, ttl: float, metadata: bytes | None) -> None:
        self.stream_id = 0
        self.requests = requests
        self.ttl = ttl
        self.metadata = metadata


class MetadataPushed(Event):
    """The peer pushed metadata for the connection, or for the stream of `stream_id`."""

    __slots__ = ("metadata",)

    def __init__(self, stream_id: int, metadata: bytes) -> None:
        self.stream_id = stream_id
        self.metadata = metadata


class Draining(Event):
    """The peer will close the connection when its streams are done: open no new ones."""

    __slots__ = ()


class Unlinked(Event):
    """The session gave up its link because the peer stopped responding: close it, and open another one.

    Attributes:
        error: The reason.

    """

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.stream_id = 0
        self.error = error


class Closed(Event):
    """The session is closed. Every open stream has failed before this event.

    Attributes:
        error: The reason, or ``None`` if this side closed it.

    """

    __slots__ = ("error",)

    def __init__(self, error: Exception | None) -> None:
        self.stream_id = 0
        self.error = error
