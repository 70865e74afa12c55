"""A service with one procedure of each kind, for tests that go over real transports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

from weirpool import ApplicationError, Items, Payload, Service

__all__ = ["make_service"]


def make_service(seen: list[object]) -> Service:
    service = Service()

    @service.call("demo.add")
    def add(request: Payload) -> bytes:
        value = json.loads(request.data)
        if value["a"] < 0:
            raise ApplicationError("NEGATIVE", "a is negative", b'{"a":%d}' % value["a"])
        return json.dumps({"sum": value["a"] + value["b"]}).encode()

    @service.call("demo.boom")
    def boom(request: Payload) -> bytes:
        raise KeyError("a secret")

    @service.call("demo.never")
    async def never(request: Payload) -> bytes:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append("never ended")
        return b""

    @service.call("demo.nothing")
    def nothing(request: Payload) -> None:
        seen.append(request.data)

    @service.stream("demo.count")
    def count(request: Payload) -> Iterator[bytes]:
        for number in range(json.loads(request.data)["upto"]):
            yield b'{"i":%d}' % number

    @service.upload("demo.sum")
    async def total(request: Payload, items: Items) -> bytes:
        result = json.loads(request.data)["start"]
        async for item in items:
            result += json.loads(item.data)["n"]
        return b'{"total":%d}' % result

    @service.channel("demo.echo")
    async def echo(request: Payload, items: Items) -> AsyncIterator[bytes]:
        prefix = json.loads(request.data)["prefix"]
        async for item in items:
            yield json.dumps({"response": prefix + json.loads(item.data)["msg"]}).encode()

    return service
