"""The interop checks on rsocket-py: ``python -m interop.py.client TRANSPORT HOST PORT CUT_PORT``.

It prints one JSON object, and exits with 0 if all checks are ok. ``interop/README.md`` describes the checks. Each check
uses its own connection.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from reactivestreams.subscriber import DefaultSubscriber
from rsocket.exceptions import RSocketProtocolError
from rsocket.extensions.helpers import composite, metadata_item, route
from rsocket.extensions.mimetypes import WellKnownMimeTypes
from rsocket.helpers import single_transport_provider
from rsocket.payload import Payload
from rsocket.rsocket_client import RSocketClient
from rsocket.streams.stream_from_async_generator import StreamFromAsyncGenerator

from ..harness import (
    ANSWER_TIMEOUT,
    CHECK_TIMEOUT,
    LEASE,
    LEASE_CALLS,
    LEASE_SECONDS,
    MEGABYTES_20,
    Place,
    check,
    expect,
    numbers,
    run_all,
)
from .transports import dialed

FRAGMENT_BYTES = 64 * 1024


def request(name: str, data: bytes = b"", *more) -> Payload:
    return Payload(data, composite(route(name), *more))


@asynccontextmanager
async def connection(
    place: Place, keepalive_ms: int = 10_000, lifetime_ms: int = 60_000, mtu: int = FRAGMENT_BYTES, leases: bool = False
) -> AsyncIterator[RSocketClient]:
    async with (
        dialed(place.transport, place.host, place.port) as transport,
        RSocketClient(
            single_transport_provider(transport),
            metadata_encoding=WellKnownMimeTypes.MESSAGE_RSOCKET_COMPOSITE_METADATA,
            data_encoding=WellKnownMimeTypes.APPLICATION_OCTET_STREAM,
            keep_alive_period=timedelta(milliseconds=keepalive_ms),
            max_lifetime_period=timedelta(milliseconds=lifetime_ms),
            fragment_size_bytes=mtu,
            honor_lease=leases,
        ) as client,
    ):
        yield client


class Collector(DefaultSubscriber):
    """Collects the items of a stream, requesting `window` at a time; cancels after `stop` items."""

    def __init__(self, window: int, stop: int | None = None) -> None:
        super().__init__()
        self.items: list[Payload] = []
        self.asked = window
        self._window = window
        self._stop = stop
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_next(self, value: Payload, is_complete: bool = False) -> None:
        self.items.append(value)
        if len(self.items) > self.asked:
            self.on_error(AssertionError(f"{len(self.items)} items arrived, but only {self.asked} were requested"))
        elif is_complete:
            self.on_complete()
        elif len(self.items) == self._stop:
            self.subscription.cancel()
            self.on_complete()
        elif len(self.items) == self.asked and not self._done.done():
            self.asked += self._window
            self.subscription.request(self._window)

    def on_complete(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    def on_error(self, exception: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(exception)

    async def all(self) -> list[bytes]:
        await self._done
        return [bytes(item.data) for item in self.items]


def subscribe(stream, window: int, stop: int | None = None) -> Collector:
    collector = Collector(window, stop)
    stream.initial_request_n(window).subscribe(collector)
    return collector


def outgoing(items: list[bytes]) -> StreamFromAsyncGenerator:
    async def generate() -> AsyncIterator[tuple[Payload, bool]]:
        for at, item in enumerate(items):
            yield Payload(item), at == len(items) - 1

    return StreamFromAsyncGenerator(generate)


async def call(client: RSocketClient, payload: Payload, timeout: float = ANSWER_TIMEOUT) -> Payload:
    try:
        return await asyncio.wait_for(client.request_response(payload), timeout)
    except TimeoutError:
        raise AssertionError(f"no answer within {timeout} s") from None


async def still_alive(client: RSocketClient) -> None:
    expect((await call(client, request("echo", b"alive"))).data, b"alive", "echo afterwards")


@check("echo")
async def echo(place: Place) -> None:
    async with connection(place) as client:
        sent = request("echo", b"hello", metadata_item(b"note", b"text/plain"))
        answer = await call(client, sent)
        expect(answer.data, b"hello", "data")
        expect(answer.metadata, sent.metadata, "metadata")


def echo_of(name: str, size: int) -> None:
    @check(name)
    async def echo_size(place: Place) -> None:
        async with connection(place) as client:
            data = bytes(range(256)) * (size // 256) + bytes(size % 256)
            answer = await call(client, request("echo", data), CHECK_TIMEOUT)
            expect(len(answer.data), size, "size")
            expect(answer.data == data, True, "same data")


echo_of("echo-empty", 0)
echo_of("echo-1B", 1)
echo_of("echo-100kB", 100_000)
echo_of("echo-20MB", MEGABYTES_20)


@check("echo-shreds")
async def echo_shreds(place: Place) -> None:
    async with connection(place, mtu=64) as client:
        sent = request("echo", bytes(10_000), metadata_item(b"note" * 250, b"text/plain"))
        answer = await call(client, sent)
        expect(len(answer.data), 10_000, "size")
        expect(answer.metadata, sent.metadata, "metadata")


@check("count")
async def count(place: Place) -> None:
    async with connection(place) as client:
        items = await subscribe(client.request_stream(request("count", b"1000")), 2**31 - 1).all()
        expect(items, numbers(0, 1000), "items")


@check("count-none")
async def count_none(place: Place) -> None:
    async with connection(place) as client:
        expect(await subscribe(client.request_stream(request("count", b"0")), 8).all(), [], "items")


@check("count-window")
async def count_window(place: Place) -> None:
    async with connection(place) as client:
        items = await subscribe(client.request_stream(request("count", b"100")), 7).all()
        expect(items, numbers(0, 100), "items")


@check("count-cancel")
async def count_cancel(place: Place) -> None:
    async with connection(place) as client:
        collector = subscribe(client.request_stream(request("count", b"1000000")), 16, stop=40)
        await collector.all()
        await still_alive(client)
        await asyncio.sleep(0.3)
        expect(len(collector.items) <= collector.asked, True, f"{len(collector.items)} items, within the window")


@check("no-metadata")
async def no_metadata(place: Place) -> None:
    async with connection(place) as client:
        collector = subscribe(client.request_stream(request("count", b"1")), 8)
        await collector.all()
        expect(collector.items[0].metadata, None, "metadata")


@check("blob")
async def blob(place: Place) -> None:
    async with connection(place) as client:
        items = await subscribe(client.request_stream(request("blob", b"5,100000")), 2).all()
        expect([len(item) for item in items], [100_000] * 5, "sizes")


@check("blob-empty")
async def blob_empty(place: Place) -> None:
    async with connection(place) as client:
        collector = subscribe(client.request_stream(request("blob", b"3,0")), 8)
        items = await asyncio.wait_for(collector.all(), ANSWER_TIMEOUT)
        expect([len(item) for item in items], [0] * 3, "sizes")


@check("blob-20MB")
async def blob_20mb(place: Place) -> None:
    async with connection(place) as client:
        items = await subscribe(client.request_stream(request("blob", b"1,%d" % MEGABYTES_20)), 1).all()
        expect([len(item) for item in items], [MEGABYTES_20], "sizes")


@check("sum")
async def sum_(place: Place) -> None:
    async with connection(place) as client:
        items = outgoing(numbers(2, 101))
        expect(await subscribe(client.request_channel(request("sum", b"1"), items), 4).all(), [b"5050"], "sum")


@check("sum-late")
async def sum_late(place: Place) -> None:
    async with connection(place) as client:
        items = outgoing(numbers(1, 101))
        expect(await subscribe(client.request_channel(request("sum"), items), 4).all(), [b"5050"], "sum")


@check("sum-one")
async def sum_one(place: Place) -> None:
    async with connection(place) as client:
        collector = subscribe(client.request_channel(request("sum", b"7")), 4)
        expect(await asyncio.wait_for(collector.all(), ANSWER_TIMEOUT), [b"7"], "sum")


@check("double")
async def double(place: Place) -> None:
    async with connection(place) as client:
        items = outgoing(numbers(1, 200))
        items = await subscribe(client.request_channel(request("double", b"0"), items), 5).all()
        expect(items, [b"%d" % (2 * n) for n in range(200)], "items")


@check("double-cancel")
async def double_cancel(place: Place) -> None:
    async with connection(place) as client:
        items = outgoing(numbers(1, 100_000))
        collector = subscribe(client.request_channel(request("double", b"0"), items), 5, stop=10)
        await collector.all()
        await still_alive(client)


@check("log")
async def log(place: Place) -> None:
    async with connection(place) as client:
        await client.fire_and_forget(request("log", b"a line"))
        await still_alive(client)


@check("fail")
async def fail(place: Place) -> None:
    async with connection(place) as client:
        try:
            answer = await call(client, request("fail"))
        except RSocketProtocolError as error:
            expect((int(error.error_code), error.data), (0x301, "boom"), "code and text")
        except RuntimeError as error:
            raise AssertionError(f"code 0x201, {error}") from error
        else:
            raise AssertionError(f"an answer: {answer}")
        await still_alive(client)


async def refused(place: Place, payload: Payload) -> None:
    async with connection(place) as client:
        try:
            answer = await call(client, payload)
        except (RSocketProtocolError, RuntimeError):
            await still_alive(client)
        else:
            raise AssertionError(f"an answer: {answer}")


@check("unknown")
async def unknown(place: Place) -> None:
    await refused(place, request("no.such.procedure"))


@check("unrouted")
async def unrouted(place: Place) -> None:
    await refused(place, Payload(b"data"))


@check("slow")
async def slow(place: Place) -> None:
    async with connection(place) as client:
        started = time.monotonic()
        answer = asyncio.ensure_future(call(client, request("slow", b"300")))
        await still_alive(client)
        expect(answer.done(), False, "echo overtakes slow")
        await answer
        expect(time.monotonic() - started >= 0.3, True, "took 300 ms")


@check("slow-cancel")
async def slow_cancel(place: Place) -> None:
    async with connection(place) as client:
        answer = asyncio.ensure_future(client.request_response(request("slow", b"10000")))
        await asyncio.sleep(0.05)
        answer.cancel()
        await still_alive(client)


@check("keepalive")
async def keepalive(place: Place) -> None:
    async with connection(place, keepalive_ms=200, lifetime_ms=1200) as client:
        await asyncio.sleep(3.0)
        await still_alive(client)


@check(LEASE)
async def lease(place: Place) -> None:
    started = time.monotonic()
    async with connection(place, leases=True) as client:
        for number in numbers(0, LEASE_CALLS):
            # A call waits for its lease by itself.
            expect((await call(client, request("echo", number))).data, number, "data")
    took = time.monotonic() - started
    expect(took >= LEASE_SECONDS, True, f"the calls took {took:.1f} s, as long as the leases require")


@check("resume")
async def resume(place: Place) -> None:
    raise AssertionError("the library cannot resume")


if __name__ == "__main__":
    logging.getLogger("pyrsocket").setLevel(logging.CRITICAL)
    sys.exit(asyncio.run(run_all("py")))
