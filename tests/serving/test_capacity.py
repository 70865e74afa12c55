"""What the journals of a server share, and the shares of clients in it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.waiting import until
from weirpool import Rejected
from weirpool.aio import descriptors
from weirpool.serving import capacity
from weirpool.serving.capacity import Capacity


def test_a_client_holds_no_more_names_than_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "MAX_HOLDS", 4)
    shared = Capacity()
    with shared.hold("a"), shared.hold("a"):
        with pytest.raises(Rejected, match="this client has 2 of 4 names") as refused, shared.hold("a"):
            pass
        assert refused.value.temporary
        with shared.hold("b"):
            pass
    with shared.hold("a"), shared.hold("a"):
        pass


def test_a_first_name_needs_a_descriptor_too(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Capacity()
    monkeypatch.setattr(descriptors, "spare", lambda: 1)
    with shared.hold("a"), pytest.raises(Rejected, match="no more descriptors"), shared.hold("a"):
        pass
    monkeypatch.setattr(descriptors, "spare", lambda: -5)
    with pytest.raises(Rejected, match="no more descriptors"), shared.hold("a"):
        pass


async def test_a_client_that_blocks_threads_leaves_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "THREADS", 4)
    shared = Capacity()
    gate = threading.Event()
    running = [0]

    def block() -> None:
        running[0] += 1
        gate.wait()

    blocked = [asyncio.ensure_future(shared.in_thread("greedy", block)) for _ in range(20)]
    try:
        await until(lambda: running[0] == 2)
        assert await shared.in_thread("honest", lambda: "answered") == "answered"
        assert running[0] == 2
    finally:
        gate.set()
        await asyncio.gather(*blocked)
    assert running[0] == 20


async def test_canceled_work_keeps_its_turn_until_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "THREADS", 2)
    shared = Capacity()
    begun, gate = threading.Event(), threading.Event()

    def block() -> None:
        begun.set()
        gate.wait()

    first = asyncio.ensure_future(shared.in_thread("a", block))
    await until(begun.is_set)
    first.cancel()
    second = asyncio.ensure_future(shared.in_thread("a", lambda: "second"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not first.done() and not second.done()
    gate.set()
    assert await second == "second"
    assert first.cancelled()
