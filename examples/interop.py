"""The service that other implementations are tested against: ``penstock serve examples/interop.py:service``.

Numbers are ASCII. The payload that opens an upload or a channel is its first item, unless its data is empty:
some libraries always put an item there, others nothing but the route.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

from penstock import ApplicationError, Payload, Service

logger = logging.getLogger("interop")
service = Service()


@service.call("echo")
def echo(request: Payload) -> Payload:
    return request


@service.stream("count")
def count(request: Payload) -> Iterator[bytes]:
    return (b"%d" % number for number in range(int(request.data)))


@service.stream("blob")
def blob(request: Payload) -> Iterator[bytes]:
    total, size = map(int, request.data.split(b","))
    item = bytes(size)
    return (item for _ in range(total))


async def numbers(request: Payload, items: AsyncIterator[Payload]) -> AsyncIterator[int]:
    if request.data:
        yield int(request.data)
    async for item in items:
        yield int(item.data)


@service.upload("sum")
async def sum_(request: Payload, items: AsyncIterator[Payload]) -> bytes:
    total = 0
    async for number in numbers(request, items):
        total += number
    return b"%d" % total


@service.channel("double")
async def double(request: Payload, items: AsyncIterator[Payload]) -> AsyncIterator[bytes]:
    async for number in numbers(request, items):
        yield b"%d" % (2 * number)


@service.fire("log")
def log(request: Payload) -> None:
    logger.info("%d bytes", len(request.data))


@service.call("fail")
def fail(request: Payload) -> Payload:
    raise ApplicationError(0x301, "boom")


@service.call("slow")
async def slow(request: Payload) -> Payload:
    await asyncio.sleep(int(request.data) / 1000)
    return Payload(request.data)
