"""The interop checks on Weirpool: ``python -m interop.ours_client TRANSPORT HOST PORT CUT_PORT``.

It prints one JSON object, and exits with 0 if all checks are ok. ``interop/README.md`` describes the checks. Each check
uses its own connection.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

import weirpool
from weirpool import ApplicationError, Payload, Settings

from .harness import (
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

SETTINGS = Settings(close_grace=0.2)
RESUMING = Settings(resume=True, keepalive_interval=0.5, keepalive_lifetime=5.0)
ECHO_ROUTE = b"\xfe\x00\x00\x05\x04echo"
"""Composite metadata with one entry: routing (0x7E) with the tag `echo`."""
NOTE = b"\x86\x00\x00\x04note"
"""A second entry: application/octet-stream (0x06)."""

Peer = weirpool.Peer
Run = Callable[[Peer], Awaitable[None]]


def url_of(place: Place) -> str:
    return f"rsocket+{place.transport}://{place.host}:{place.port}/"


def connected(name: str, settings: Settings = SETTINGS) -> Callable[[Run], Run]:
    """Register a check that takes a connected peer."""

    def register(function: Run) -> Run:
        @check(name)
        async def run(place: Place) -> None:
            async with weirpool.connect(url_of(place), settings=settings) as peer:
                await function(peer)

        return function

    return register


async def answered(answer: Awaitable[Payload]) -> Payload:
    try:
        return await asyncio.wait_for(answer, ANSWER_TIMEOUT)
    except TimeoutError:
        raise AssertionError(f"no answer within {ANSWER_TIMEOUT} s") from None


async def still_alive(peer: Peer) -> None:
    expect((await answered(peer.call("echo", b"alive"))).data, b"alive", "echo afterwards")


async def collect(items: weirpool.Stream) -> list[bytes]:
    async with items:
        return [item.data async for item in items]


@connected("echo")
async def echo(peer: Peer) -> None:
    answer = await answered(peer.call("echo", Payload(b"hello", b"note")))
    expect(answer.data, b"hello", "data")
    expect(answer.metadata, ECHO_ROUTE + NOTE, "metadata")


def echo_of(name: str, size: int) -> None:
    @connected(name)
    async def echo_size(peer: Peer) -> None:
        data = bytes(range(256)) * (size // 256) + bytes(size % 256)
        answer = await asyncio.wait_for(peer.call("echo", data), CHECK_TIMEOUT)
        expect(len(answer.data), size, "size")
        expect(answer.data == data, True, "same data")


echo_of("echo-empty", 0)
echo_of("echo-1B", 1)
echo_of("echo-100kB", 100_000)
echo_of("echo-20MB", MEGABYTES_20)


@connected("echo-shreds", Settings(fragment_bytes=64))
async def echo_shreds(peer: Peer) -> None:
    answer = await answered(peer.call("echo", bytes(10_000), metadata=b"note" * 250))
    expect(len(answer.data), 10_000, "size")
    expect(answer.metadata, ECHO_ROUTE + b"\x86\x00\x03\xe8" + b"note" * 250, "metadata")


@connected("count")
async def count(peer: Peer) -> None:
    expect(await collect(peer.stream("count", b"1000", credit=2**31 - 1)), numbers(0, 1000), "items")
    async with peer.stream("count", b"1000") as stream:
        columns = [batch.column("data").to_pylist() async for batch in stream.batches()]
    expect([item for column in columns for item in column], numbers(0, 1000), "items of batches")


@connected("count-none")
async def count_none(peer: Peer) -> None:
    expect(await collect(peer.stream("count", b"0")), [], "items")


@connected("count-window")
async def count_window(peer: Peer) -> None:
    # The session fails a stream that sends more items than requested.
    expect(await collect(peer.stream("count", b"100", credit=7)), numbers(0, 100), "items")


@connected("count-cancel")
async def count_cancel(peer: Peer) -> None:
    items = []
    async with peer.stream("count", b"1000000", credit=16) as stream:
        async for item in stream:
            items.append(item.data)
            if len(items) == 40:
                break
    expect(items, numbers(0, 40), "items")
    await still_alive(peer)


@connected("no-metadata")
async def no_metadata(peer: Peer) -> None:
    async with peer.stream("count", b"1") as stream:
        expect([item.metadata async for item in stream], [None], "metadata")


@connected("blob")
async def blob(peer: Peer) -> None:
    items = await collect(peer.stream("blob", b"5,100000", credit=2))
    expect([len(item) for item in items], [100_000] * 5, "sizes")


@connected("blob-empty")
async def blob_empty(peer: Peer) -> None:
    items = await asyncio.wait_for(collect(peer.stream("blob", b"3,0")), ANSWER_TIMEOUT)
    expect([len(item) for item in items], [0] * 3, "sizes")


@connected("blob-20MB")
async def blob_20mb(peer: Peer) -> None:
    items = await collect(peer.stream("blob", b"1,%d" % MEGABYTES_20, credit=1))
    expect([len(item) for item in items], [MEGABYTES_20], "sizes")


@connected("sum")
async def sum_(peer: Peer) -> None:
    expect((await peer.upload("sum", b"1", numbers(2, 101))).data, b"5050", "sum")


@connected("sum-late")
async def sum_late(peer: Peer) -> None:
    expect((await peer.upload("sum", b"", numbers(1, 101))).data, b"5050", "sum")


@connected("sum-one")
async def sum_one(peer: Peer) -> None:
    expect((await answered(peer.upload("sum", b"7", []))).data, b"7", "sum")


@connected("double")
async def double(peer: Peer) -> None:
    items = await collect(peer.channel("double", b"0", numbers(1, 200), credit=5))
    expect(items, [b"%d" % (2 * number) for number in range(200)], "items")


@connected("double-cancel")
async def double_cancel(peer: Peer) -> None:
    def endless() -> Iterator[bytes]:
        yield from numbers(1, 100_000)

    received = 0
    async with peer.channel("double", b"0", endless(), credit=5) as incoming:
        async for _ in incoming:
            received += 1
            if received == 10:
                break
    await still_alive(peer)


@connected("log")
async def log(peer: Peer) -> None:
    await peer.fire("log", b"a line")
    await still_alive(peer)


@connected("fail")
async def fail(peer: Peer) -> None:
    try:
        answer = await answered(peer.call("fail"))
    except ApplicationError as error:
        expect(f"{error.code:#x} {error.message}", "0x301 boom", "code and text")
    else:
        raise AssertionError(f"an answer: {answer}")
    await still_alive(peer)


async def refused(peer: Peer, route: str) -> None:
    try:
        answer = await answered(peer.call(route, b"data"))
    except ApplicationError:
        await still_alive(peer)
    else:
        raise AssertionError(f"an answer: {answer}")


@connected("unknown")
async def unknown(peer: Peer) -> None:
    await refused(peer, "no.such.procedure")


@connected("unrouted")
async def unrouted(peer: Peer) -> None:
    await refused(peer, "")


@connected("slow")
async def slow(peer: Peer) -> None:
    started = time.monotonic()
    answer = asyncio.ensure_future(peer.call("slow", b"300"))
    await still_alive(peer)
    expect(answer.done(), False, "slow is over before a later echo")
    await answered(answer)
    expect(time.monotonic() - started >= 0.3, True, "took 300 ms")


@connected("slow-cancel")
async def slow_cancel(peer: Peer) -> None:
    answer = asyncio.ensure_future(peer.call("slow", b"10000"))
    await asyncio.sleep(0.05)
    answer.cancel()
    await still_alive(peer)


@check(LEASE)
async def lease(place: Place) -> None:
    started = time.monotonic()
    async with weirpool.connect(url_of(place), settings=Settings(lease=True)) as peer:
        for number in numbers(0, LEASE_CALLS):
            # Each call waits for a lease.
            expect((await answered(peer.call("echo", number))).data, number, "data")
    took = time.monotonic() - started
    expect(took >= LEASE_SECONDS, True, f"the calls took {took:.1f} s, as long as the leases require")


@connected("keepalive", Settings(keepalive_interval=0.2, keepalive_lifetime=2.4))
async def keepalive(peer: Peer) -> None:
    await asyncio.sleep(4.0)
    await still_alive(peer)


@check("resume")
async def resume(place: Place) -> None:
    items = []
    url = url_of(place.cut())
    async with weirpool.connect(url, settings=RESUMING) as peer, peer.stream("count", b"3000", credit=20) as stream:
        async for item in stream:
            items.append(item.data)
            if len(items) % 20 == 0:
                await asyncio.sleep(0.01)
    expect(items, numbers(0, 3000), "items")


if __name__ == "__main__":
    sys.exit(asyncio.run(run_all("weirpool")))
