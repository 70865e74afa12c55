"""A service for tests of the blocking API, and programs in processes of their own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Iterator

import msgspec

from weirpool import ApplicationError, Items, Payload, Service, TypedError

__all__ = ["Point", "Watch", "Wrong", "run_program", "service_of"]

PROGRAM_SECONDS = 60


class Point(msgspec.Struct):
    """A value of typed streams."""

    x: int
    y: float = 0.0


class Wrong(TypedError, code="WRONG"):
    """An error with a name."""


class Watch:
    """What a service has seen."""

    def __init__(self) -> None:
        self.yielded = 0
        self.began = threading.Event()
        self.canceled = threading.Event()
        self.fired: list[bytes] = []
        self.pushed: list[bytes] = []


def service_of(watch: Watch) -> Service:
    """Return a service whose routes are named after what they do."""
    service = Service()
    service.push(watch.pushed.append)

    @service.call("echo")
    def echo(request: Payload) -> Payload:
        return Payload(request.data)

    @service.call("never")
    async def never(request: Payload) -> Payload:
        watch.began.set()
        try:
            await asyncio.Event().wait()
            return Payload()
        finally:
            watch.canceled.set()

    @service.call("fail")
    def fail(request: Payload) -> Payload:
        raise ApplicationError(0x301, "not today")

    @service.fire("note")
    def note(request: Payload) -> None:
        watch.fired.append(request.data)

    @service.stream("count")
    def count(request: Payload) -> Iterator[bytes]:
        for number in range(int(request.data)):
            watch.yielded += 1
            yield b"%d" % number

    @service.stream("silence")
    async def silence(request: Payload) -> AsyncIterator[bytes]:
        watch.began.set()
        try:
            yield b"first"
            await asyncio.get_running_loop().create_future()
        finally:
            watch.canceled.set()

    @service.upload("sum")
    async def total(request: Payload, items: Items) -> bytes:
        return b"%d" % sum([int(item.data) async for item in items])

    @service.channel("back")
    async def back(request: Payload, items: Items) -> AsyncIterator[Payload]:
        async for item in items:
            yield item

    @service.stream("points")
    def points(n: int) -> Iterator[Point]:
        return (Point(number, number / 2) for number in range(n))

    @service.upload("points.sum")
    async def points_sum(n: int, items: AsyncIterator[Point]) -> int:
        return sum([point.x async for point in items])

    @service.stream("points.wrong", errors=[Wrong])
    def wrong(n: int) -> Iterator[Point]:
        yield Point(n)
        raise Wrong("it is wrong")

    @service.channel("points.both", errors=[Wrong])
    async def both(n: int, items: AsyncIterator[Point]) -> AsyncIterator[Point | Wrong]:
        for each in gaps(n):
            yield each

    @service.stream("points.gaps", errors=[Wrong])
    def gaps(n: int) -> Iterator[Point | Wrong]:
        yield Point(n)
        yield Wrong("it is missing")
        yield Point(n + 1)

    return service


def run_program(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a program that has imported `weirpool.sync` and the service, with warnings as errors."""
    start = "import os, sys, threading\nimport weirpool, weirpool.sync\nfrom tests.sync.served import *\n"
    return subprocess.run(
        [sys.executable, "-W", "error", *options, "-c", start + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
    )
