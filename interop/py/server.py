"""The interop service on rsocket-py: ``server.py TRANSPORT [--lease]`` prints ``LISTENING port`` and serves.

``interop/README.md`` describes the procedures.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

from reactivestreams.publisher import Publisher
from reactivestreams.subscriber import DefaultSubscriber
from rsocket.exceptions import RSocketProtocolError
from rsocket.helpers import create_error_future, create_response
from rsocket.lease import DefinedLease, LeasePublisher
from rsocket.payload import Payload
from rsocket.routing.request_router import RequestRouter
from rsocket.routing.routing_request_handler import RoutingRequestHandler
from rsocket.rsocket_server import RSocketServer
from rsocket.streams.stream_from_async_generator import StreamFromAsyncGenerator
from rsocket.transports.transport import Transport

from ..harness import LEASE_INTERVAL, LEASE_REQUESTS
from .transports import listening

FRAGMENT_BYTES = 64 * 1024
WINDOW = 8
"""Items that a channel requests at a time."""

router = RequestRouter()
Items = AsyncIterator[tuple[Payload, bool]]


def publish(items: Callable[[], Items]) -> StreamFromAsyncGenerator:
    """Return a publisher of `items`, an async generator function of pairs (payload, whether it is the last)."""
    return StreamFromAsyncGenerator(items)


class Inbox(DefaultSubscriber):
    """The inbound half of a channel, with a window of requested items: `get` returns a payload, or None at the end."""

    def __init__(self, first: Payload) -> None:
        super().__init__()
        self._queue: asyncio.Queue[Payload | Exception | None] = asyncio.Queue()
        self._asked = 0
        if first.data:
            self._queue.put_nowait(first)

    def on_subscribe(self, subscription) -> None:
        super().on_subscribe(subscription)
        self._ask()

    def _ask(self) -> None:
        self._asked = WINDOW
        self.subscription.request(WINDOW)

    def on_next(self, value: Payload, is_complete: bool = False) -> None:
        self._queue.put_nowait(value)
        self._asked -= 1
        if is_complete:
            self.on_complete()
        elif self._asked == 0:
            self._ask()

    def on_complete(self) -> None:
        self._queue.put_nowait(None)

    def on_error(self, exception: Exception) -> None:
        self._queue.put_nowait(exception)

    async def get(self) -> Payload | None:
        item = await self._queue.get()
        if isinstance(item, Exception):
            raise item
        return item


@router.response("echo")
async def echo(payload: Payload):
    return create_response(bytes(payload.data), bytes(payload.metadata))


@router.stream("count")
async def count(payload: Payload) -> Publisher:
    total = int(payload.data)

    async def items() -> Items:
        for number in range(total):
            yield Payload(b"%d" % number), number == total - 1

    return publish(items)


@router.stream("blob")
async def blob(payload: Payload) -> Publisher:
    total, size = map(int, payload.data.split(b","))

    async def items() -> Items:
        for number in range(total):
            yield Payload(bytes(size)), number == total - 1

    return publish(items)


@router.channel("sum")
async def sum_(payload: Payload) -> tuple[Publisher, DefaultSubscriber]:
    inbox = Inbox(payload)

    async def items() -> Items:
        total = 0
        while (item := await inbox.get()) is not None:
            total += int(item.data)
        yield Payload(b"%d" % total), True

    return publish(items), inbox


@router.channel("double")
async def double(payload: Payload) -> tuple[Publisher, DefaultSubscriber]:
    inbox = Inbox(payload)

    async def items() -> Items:
        while (item := await inbox.get()) is not None:
            yield Payload(b"%d" % (2 * int(item.data))), False

    return publish(items), inbox


@router.fire_and_forget("log")
async def log(payload: Payload) -> None:
    print(f"LOG {len(payload.data)}", flush=True)


@router.response("fail")
async def fail(payload: Payload):
    # The library's enumeration ends at 0x204, but its encoder packs any number.
    return create_error_future(RSocketProtocolError(0x301, data="boom"))


@router.response("slow")
async def slow(payload: Payload):
    async def answer() -> Payload:
        await asyncio.sleep(int(payload.data) / 1000)
        return Payload(bytes(payload.data))

    # Awaiting here would delay every other request of the connection.
    return asyncio.ensure_future(answer())


class Leases(LeasePublisher):
    """Grants a lease now, and another one whenever it expires."""

    def __init__(self) -> None:
        self._granting: asyncio.Task[None] | None = None

    def subscribe(self, subscriber) -> None:
        self._granting = asyncio.create_task(self._grant(subscriber))

    async def _grant(self, subscriber) -> None:
        while True:
            subscriber.on_next(DefinedLease(LEASE_REQUESTS, timedelta(seconds=LEASE_INTERVAL)))
            await asyncio.sleep(LEASE_INTERVAL)


async def main(transport: str, *options: str) -> None:
    def serve(accepted: Transport) -> None:
        RSocketServer(
            accepted,
            handler_factory=lambda: RoutingRequestHandler(router),
            fragment_size_bytes=FRAGMENT_BYTES,
            lease_publisher=Leases() if "--lease" in options else None,
        )

    async with listening(transport, serve) as port:
        print(f"LISTENING {port}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
