"""The service that other implementations are tested against, with every kind of interaction.

RSocket's peers use `echo` and the handlers next to it, whose data is bytes. River's peers use the same procedures of
the service `interop`, such as `interop.echo`, whose data has a schema.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from weirpool import ApplicationError, Items, Payload, Service, TypedError

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
    # The request that opens the stream may be the first item, or empty.
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


# The same handlers for River.


class Number(msgspec.Struct):
    n: int


class Blob(msgspec.Struct):
    number: int
    size: int


class Text(msgspec.Struct):
    text: str


class Boom(TypedError, code="BOOM"):
    """The error of `fail`."""

    extras: Number


class Echo(msgspec.Struct):
    data: Any = None


@service.call("interop.echo")
def echo_value(init: Echo) -> Echo:
    """Return the input."""
    return init


@service.stream("interop.count")
def count_values(init: Number) -> Iterator[Number]:
    """Count from 0 to n - 1."""
    return (Number(number) for number in range(init.n))


@service.stream("interop.blob")
def blob_values(init: Blob) -> Iterator[Text]:
    """Send a number of texts with a given length."""
    item = Text("x" * init.size)
    return (item for _ in range(init.number))


@service.upload("interop.sum")
async def total_values(init: Number, items: AsyncIterator[Number]) -> Number:
    """Return the sum of all numbers, including the first one."""
    return Number(init.n + sum([item.n async for item in items]))


@service.channel("interop.double")
async def double_values(init: Number, items: AsyncIterator[Number]) -> AsyncIterator[Number]:
    """Double each number, including the first one."""
    yield Number(2 * init.n)
    async for item in items:
        yield Number(2 * item.n)


@service.call("interop.fail", errors=[Boom])
def fail_value(init: Number) -> Number:
    """Fail."""
    raise Boom("boom", init)


@service.stream("interop.fail-stream", errors=[Boom])
def fail_values(init: Number) -> Iterator[Number]:
    """Fail after n items."""
    yield from count_values(init)
    raise Boom("boom", init)


@service.stream("interop.gaps", errors=[Boom])
async def gaps_between_values(init: Number) -> AsyncIterator[Number | Boom]:
    """Send 0, 1, an error that does not end the stream, and n."""
    yield Number(0)
    yield Number(1)
    yield Boom("boom", init)
    yield init


@service.call("interop.slow")
async def slow_value(init: Number) -> Number:
    """Return after n milliseconds."""
    await asyncio.sleep(init.n / 1000)
    return init
