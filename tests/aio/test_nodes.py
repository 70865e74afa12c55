from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weirpool
from tests.aio.serving import alone, make_service
from tests.waiting import until
from weirpool import Payload, Reconnect, Settings
from weirpool.aio.dialer import Dialer
from weirpool.aio.nodes import Node
from weirpool.aio.service import Service
from weirpool.aio.strategies import Failures, PeakEwma
from weirpool.urls import parse_url

pytestmark = pytest.mark.usefixtures("tidy")

URL = "rsocket+memory://node"


def node_of(changes: list[int] | None = None, rejections: int = 2, **policy: Any) -> Node:
    url = parse_url(URL)
    reconnect = Reconnect(**{"first_delay": 0.0, "longest_delay": 0.0, **policy})
    dialer = Dialer(url, Service(), Settings(), Payload(), None, reconnect.backoff)
    noted = changes if changes is not None else []
    return Node(url, dialer, reconnect, PeakEwma(10.0), Failures(10.0), rejections, lambda: noted.append(1))


async def test_node_state_follows_its_connection() -> None:
    changes: list[int] = []
    node = node_of(changes)
    node.connector.begin()
    await until(lambda: node.connector.last_error is not None)
    status = node.status(0.0)
    assert (status.url, status.state, status.outstanding) == (URL, "away", 0)
    assert "listens on" in str(status.error)
    async with weirpool.serve(make_service([], asyncio.Event()), URL):
        await until(lambda: node.connector.connected)
        assert (node.status(0.0).state, node.status(0.0).error) == ("up", None)
        call = asyncio.create_task(node.connector.peer.call("never"))
        await until(lambda: node.outstanding == 1)
        call.cancel()
        closing = asyncio.create_task(node.close(None))
        await until(lambda: node.status(0.0).state == "leaving")
        assert not node.connector.connected
        await closing
    assert len(changes) >= 3
    await alone()


async def test_node_is_gone_after_the_last_attempt() -> None:
    node = node_of(attempts=2)
    node.connector.begin()
    await until(lambda: node.status(0.0).state == "gone")
    assert "listens on" in str(node.status(0.0).error)
    await node.close(0)


async def test_node_rests_after_consecutive_rejections() -> None:
    changes: list[int] = []
    node = node_of(changes)
    async with weirpool.serve(make_service([], asyncio.Event()), URL):
        await node.connector.open()
        node.rejected(0.0, 0.0)
        node.answered(0.0, 0.0)
        node.rejected(0.0, 0.0)
        assert not node.resting
        node.rejected(0.0, 0.0)
        assert (node.resting, node.connector.connected, node.status(0.0).state) == (True, True, "resting")
        changes.clear()
        await until(lambda: not node.resting)
        assert changes
        # One more rejection begins another rest.
        node.rejected(0.0, 0.0)
        assert node.resting
        await until(lambda: not node.resting)
        node.answered(0.0, 0.0)
        node.rejected(0.0, 0.0)
        assert not node.resting
        await node.close(0)


@pytest.mark.parametrize("rejections", [1, 2])
async def test_rests_grow_until_the_node_responds(rejections: int) -> None:
    node = node_of(rejections=rejections, first_delay=100.0, longest_delay=1000.0, jitter=0.0)
    delays = []
    for _ in range(3):
        node.rejected(0.0, 0.0)
        node.rejected(0.0, 0.0)
        assert node._timer is not None
        delays.append(round(node._timer.when() - asyncio.get_running_loop().time(), -2))
        node._timer.cancel()
        node._rested()
    assert delays == [100.0, 200.0, 400.0]
    node.answered(0.0, 0.0)
    node.rejected(0.0, 0.0)
    node.rejected(0.0, 0.0)
    assert node._timer is not None
    assert round(node._timer.when() - asyncio.get_running_loop().time(), -2) == 100.0
    await node.close(0)
    assert not node.resting


async def test_error_ends_a_row_of_rejections() -> None:
    node = node_of()
    for _ in range(3):
        node.rejected(0.0, 0.0)
        node.failed(0.0, 0.0)
    assert not node.resting
    await node.close(0)


async def test_rejections_and_errors_count_as_failures_until_a_response() -> None:
    node = node_of(rejections=10)
    node.rejected(0.0, 1.0)
    node.failed(1.0, 2.0)
    before = node.failures.factor(2.0)
    assert before > 2.0
    node.answered(2.0, 2.0)
    assert node.failures.factor(2.0) == pytest.approx(before**0.5)
    await node.close(0)


async def test_error_counts_as_latency_only_if_it_took_longer_than_responses() -> None:
    node = node_of()
    node.failed(0.0, 5.0)
    assert node.latency.seconds(5.0) == 0.0
    node.answered(4.0, 6.0)
    node.failed(5.9, 6.0)
    assert node.latency.seconds(6.0) == 2.0
    node.failed(1.0, 6.0)
    assert node.latency.seconds(6.0) == 5.0
    await node.close(0)


async def test_canceled_call_is_a_failure_only_if_it_took_longer_than_responses() -> None:
    node = node_of()
    node.answered(4.0, 6.0)
    node.canceled(4.0, 6.0)
    assert (node.latency.seconds(6.0), node.failures.factor(6.0)) == (2.0, 1.0)
    node.canceled(3.0, 6.0)
    assert (node.latency.seconds(6.0), node.failures.factor(6.0)) == (3.0, 2.0)
    await node.close(0)
