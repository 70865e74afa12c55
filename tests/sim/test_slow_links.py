"""Messages that take long to transfer over working links arrive (THREATS 91)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import weirpool
from tests.sim.clockwork import network, run
from tests.sim.links import Road
from weirpool import Payload, Service, Settings

MIB = 1024 * 1024
SLOW = 100_000.0
"""Bytes per second."""


def body(size: int) -> bytes:
    return json.dumps("x" * size).encode()


def service_of(answer_bytes: int, calls: list[int]) -> Service:
    service = Service()

    @service.call("demo.large")
    def large(request: Payload) -> bytes:
        calls.append(len(request.data))
        return body(answer_bytes)

    return service


WATCHED = {
    "river": Settings(),
    "rsocket": Settings(keepalive_interval=1.0, keepalive_lifetime=2.0),
    "reactivesocket-0.2": Settings(keepalive_interval=1.0, keepalive_lifetime=2.0),
}
"""For each protocol, settings with a timeout of two seconds."""


@pytest.mark.parametrize("protocol", WATCHED)
@pytest.mark.parametrize(("request_bytes", "answer_bytes"), [(MIB, 10), (10, MIB), (MIB, MIB)])
@pytest.mark.parametrize("buffer", [0, 65_536])
def test_a_large_message_arrives_over_a_slow_link(
    protocol: str, request_bytes: int, answer_bytes: int, buffer: int
) -> None:
    # THREATS 91
    calls: list[int] = []
    url, settings = f"{protocol}+memory://slow", WATCHED[protocol]

    async def main() -> Any:
        async with weirpool.serve(service_of(answer_bytes, calls), url, settings=settings):
            async with weirpool.connect(url, settings=settings) as peer:
                return await peer.call("demo.large", body(request_bytes))

    with network(lambda number: (Road(SLOW, 0.05, buffer), Road(SLOW, 0.05, buffer))) as net:
        answer = run(main(), limit=200.0)
    assert (len(answer.data), calls, net.made) == (answer_bytes + 2, [request_bytes + 2], 1)


def test_an_idle_timeout_waits_for_output_that_moves() -> None:
    # THREATS 91: reactive-streams has no heartbeats; a server gets nothing from a client that receives a large item.
    calls: list[int] = []
    url, settings = "reactive-streams+memory://slow", Settings(idle_timeout=2.0)

    async def main() -> Any:
        async with weirpool.serve(service_of(MIB, calls), url, settings=settings):
            async with weirpool.connect(url, settings=settings) as peer:
                return await peer.call("demo.large", body(10))

    with network(lambda number: (Road(SLOW, 0.05), Road(SLOW, 0.05))) as net:
        answer = run(main(), limit=200.0)
    assert (len(answer.data), net.made) == (MIB + 2, 1)
