"""Sends one request of each kind, and counts its items and bytes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ..aio.peer import Peer
from ..aio.streams import Stream
from ..kinds import Kind
from ..payload import Payload
from .measured import Measured

__all__ = ["Load", "Send", "sender"]

Send: TypeAlias = Callable[[Peer, Measured, Callable[[], None]], Coroutine[Any, Any, None]]
"""``send(peer, measured, first)`` sends a request and awaits its end. It calls `first` when the first item of a stream
has arrived, and counts items and bytes as they arrive, so that streams without an end are measured, too."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """The request that is repeated.

    Attributes:
        kind: The kind of interaction.
        route: The name of the handler; empty if the metadata contains it.
        payload: The request, which is also every item that an upload or channel sends.
        items: How many items an upload or channel sends after the request.
        take: Cancel a stream or channel after this many items; None: wait for its end.
        credit: The window of a stream or channel; None: that of the settings.

    """

    kind: Kind
    route: str
    payload: Payload
    items: int = 0
    take: int | None = None
    credit: int | None = None


def sender(load: Load) -> Send:
    """Return the function that sends the requests of `load`."""
    return _SENDERS[load.kind](load)


def _call(load: Load) -> Send:
    size = len(load.payload.data)

    async def send(peer: Peer, measured: Measured, first: Callable[[], None]) -> None:
        response = await peer.call(load.route, load.payload)
        measured.bytes += size + len(response.data)

    return send


def _fire(load: Load) -> Send:
    size = len(load.payload.data)

    async def send(peer: Peer, measured: Measured, first: Callable[[], None]) -> None:
        await peer.fire(load.route, load.payload)
        measured.bytes += size

    return send


def _stream(load: Load) -> Send:
    async def send(peer: Peer, measured: Measured, first: Callable[[], None]) -> None:
        await _receive(peer.stream(load.route, load.payload, credit=load.credit), load, measured, first)

    return send


def _upload(load: Load) -> Send:
    async def send(peer: Peer, measured: Measured, first: Callable[[], None]) -> None:
        response = await peer.upload(load.route, load.payload, _sent(load, measured))
        measured.bytes += len(response.data)

    return send


def _channel(load: Load) -> Send:
    async def send(peer: Peer, measured: Measured, first: Callable[[], None]) -> None:
        stream = peer.channel(load.route, load.payload, _sent(load, measured), credit=load.credit)
        await _receive(stream, load, measured, first)

    return send


async def _receive(stream: Stream, load: Load, measured: Measured, first: Callable[[], None]) -> None:
    count = 0
    async with stream:
        measured.bytes += len(load.payload.data)
        async for item in stream:
            if not count:
                first()
            count += 1
            measured.items += 1
            measured.bytes += len(item.data)
            if count == load.take:
                break


def _sent(load: Load, measured: Measured) -> Iterator[Payload]:
    # Metadata belongs to the request, not to the items after it.
    item = Payload(load.payload.data)
    for _ in range(load.items):
        measured.items += 1
        measured.bytes += len(item.data)
        yield item


_SENDERS: Final[dict[Kind, Callable[[Load], Send]]] = {
    Kind.CALL: _call,
    Kind.FIRE: _fire,
    Kind.STREAM: _stream,
    Kind.UPLOAD: _upload,
    Kind.CHANNEL: _channel,
}
