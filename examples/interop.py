"""The service that other implementations are tested against: every kind of interaction, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from penstock import ApplicationError, Items, Payload, Service

service = Service()


@service.call("echo")
def echo(request: Payload) -> Payload:
    return request


@service.stream("count")
def count(request: Payload) -> Iterator[bytes]:
    return (b"%d" % number for number in range(int(request.data)))


@service.stream("blob")
def blob(request: Payload) -> Iterator[bytes]:
    number, size = (int(part) for part in request.data.split(b","))
    item = bytes(size)
    return (item for _ in range(number))


@service.upload("sum")
async def total(request: Payload, items: Items) -> bytes:
    # The payload that opens the stream may be the first item, or empty.
    result = int(request.data or 0)
    async for item in items:
        result += int(item.data)
    return b"%d" % result


@service.channel("double")
async def double(request: Payload, items: Items) -> AsyncIterator[bytes]:
    if request.data:
        yield b"%d" % (2 * int(request.data))
    async for item in items:
        yield b"%d" % (2 * int(item.data))


@service.fire("log")
def log(request: Payload) -> None:
    print(request.data.decode("utf-8", "backslashreplace"), flush=True)


@service.call("fail")
def fail(request: Payload) -> Payload:
    raise ApplicationError(0x301, "boom")


@service.call("slow")
async def slow(request: Payload) -> bytes:
    await asyncio.sleep(int(request.data) / 1000)
    return request.data
