"""What a session tells its user. Events are past participles: they say what has happened.

A driver takes them from :meth:`penstock.session.Session.take_events`, in order.
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
]


class Event:
    """The base of all events.

    Attributes:
        stream_id: The stream that it concerns; 0 for the session as a whole.

    """

    __slots__ = ("stream_id",)

    def __init__(self, stream_id: int = 0) -> None:
        self.stream_id = stream_id

    def __repr__(self) -> str:
        names = [name for cls in reversed(type(self).__mro__) for name in getattr(cls, "__slots__", ())]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class Established(Event):
    """The session is set up; for a server, the set-up that its client sent.

    Attributes:
        payload: The set-up's payload.
        metadata_mime: What the connection's metadata is.
        data_mime: What the connection's data is.
        strict: The client wants to be refused if the server does not understand all of this.
        understood: Both MIME types are well-known, or those of our settings.

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
        kind: UPLOAD never occurs: on the wire it is a CHANNEL.
        route: Which handler it asks for; empty when it names none.
        payload: The request itself; for a CHANNEL it is also the first item.
        credit: Items that we may send back at once.
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
        done: It was the last one: no `Completed` follows.

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


class Completed(Event):
    """The peer's half is over: no more items come."""

    __slots__ = ()


class Failed(Event):
    """The stream is over, both halves, with an error."""

    __slots__ = ("error",)

    def __init__(self, stream_id: int, error: Exception) -> None:
        self.stream_id = stream_id
        self.error = error


class Canceled(Event):
    """The peer wants no more items from us.

    Attributes:
        done: The whole stream is over; else only our sending half.
        metadata: What the peer says about it, where the protocol lets it.

    """

    __slots__ = ("done", "metadata")

    def __init__(self, stream_id: int, done: bool, metadata: bytes | None = None) -> None:
        self.stream_id = stream_id
        self.done = done
        self.metadata = metadata


class CreditGranted(Event):
    """The peer asks for `count` more items of ours."""

    __slots__ = ("count",)

    def __init__(self, stream_id: int, count: int) -> None:
        self.stream_id = stream_id
        self.count = count


class LeaseGranted(Event):
    """The peer gives leave for `requests` requests within `ttl` seconds, and not for those of an earlier lease."""

    __slots__ = ("metadata", "requests", "ttl")

    def __init__(self, requests: int, ttl: float, metadata: bytes | None) -> None:
        self.stream_id = 0
        self.requests = requests
        self.ttl = ttl
        self.metadata = metadata


class MetadataPushed(Event):
    """The peer pushed metadata that belongs to the connection, or to the stream named."""

    __slots__ = ("metadata",)

    def __init__(self, stream_id: int, metadata: bytes) -> None:
        self.stream_id = stream_id
        self.metadata = metadata


class Draining(Event):
    """The peer will close the connection once its streams are done: open no new ones."""

    __slots__ = ()


class Unlinked(Event):
    """The session gave its link up, because the peer fell silent: close it, and open another one.

    Attributes:
        error: Why.

    """

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.stream_id = 0
        self.error = error


class Closed(Event):
    """The session is over, for good. Every stream that was open has failed before this.

    Attributes:
        error: Why, or ``None`` when this side closed it.

    """

    __slots__ = ("error",)

    def __init__(self, error: Exception | None) -> None:
        self.stream_id = 0
        self.error = error
