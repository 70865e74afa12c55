"""rsocket-py: unrouted calls, and a stream with minimal publisher and subscriber."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from reactivestreams.publisher import Publisher
from reactivestreams.subscriber import DefaultSubscriber, Subscriber
from reactivestreams.subscription import Subscription
from rsocket.helpers import create_future, single_transport_provider
from rsocket.payload import Payload
from rsocket.request_handler import BaseRequestHandler
from rsocket.rsocket_client import RSocketClient
from rsocket.rsocket_server import RSocketServer
from rsocket.transports.tcp import TransportTCP

from . import PAYLOAD

READ_BYTES = {False: 1024, True: 65_536}
"""Sizes of reads: the default of rsocket-py, and a fast one."""
ALL = 0x7FFF_FFFF


class Items(Publisher, Subscription):
    def __init__(self, count: int) -> None:
        self.left = count

    def subscribe(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        for _ in range(min(n, self.left)):
            self.left -= 1
            self.subscriber.on_next(Payload(PAYLOAD), is_complete=not self.left)

    def cancel(self) -> None:
        self.left = 0


class Handler(BaseRequestHandler):
    async def request_response(self, payload: Payload) -> asyncio.Future[Payload]:
        return create_future(payload)

    async def request_stream(self, payload: Payload) -> Publisher:
        return Items(int(payload.data))


class Counter(DefaultSubscriber):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def on_next(self, value: Payload, is_complete: bool = False) -> None:
        self.count += 1
        if is_complete:
            self.on_complete()

    def on_complete(self) -> None:
        if not self.done.done():
            self.done.set_result(self.count)

    def on_error(self, exception: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(exception)


class Client:
    def __init__(self, client: RSocketClient) -> None:
        self.client = client

    async def calls(self, count: int, in_flight: int) -> None:
        async def caller(share: int) -> None:
            for _ in range(share):
                await self.client.request_response(Payload(PAYLOAD))

        await asyncio.gather(*(caller(count // in_flight) for _ in range(in_flight)))

    async def items(self, count: int) -> None:
        counter = Counter()
        self.client.request_stream(Payload(b"%d" % count)).initial_request_n(ALL).subscribe(counter)
        got = await counter.done
        assert got == count, f"{got} of {count} items"


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        RSocketServer(TransportTCP(reader, writer, READ_BYTES[tuned]), handler_factory=Handler)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield "{}:{}".format(*server.sockets[0].getsockname())


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    host, port = address.split(":")
    transport = TransportTCP(*await asyncio.open_connection(host, int(port)), READ_BYTES[tuned])
    # A stream may keep the loop busy for a long time, in which a keepalive must not end the connection.
    hour = timedelta(hours=1)
    async with RSocketClient(
        single_transport_provider(transport), keep_alive_period=hour, max_lifetime_period=hour
    ) as client:
        yield Client(client)
