from __future__ import annotations

import asyncio
import gc

import pytest

from tests.reactive.probe import IDLE_TURNS, Probe, subscribed
from tests.waiting import turns, until
from weirpool import LocalError
from weirpool.reactive import from_aiter
from weirpool.reactive.interfaces import UNBOUNDED
from weirpool.reactive.subscriptions import TaskSubscription


async def test_no_more_than_requested_and_requests_add_up() -> None:
    probe = subscribed(from_aiter(range(100)), first=2)
    await turns(IDLE_TURNS)
    assert probe.items == [0, 1]
    probe.subscription.request(1)
    probe.subscription.request(3)
    await turns(IDLE_TURNS)
    assert probe.items == list(range(6))


async def test_request_may_be_called_from_within_an_item() -> None:
    probe = subscribed(from_aiter(range(10_000)), first=1, each=1)
    assert await probe.ended() == "complete"
    assert probe.items == list(range(10_000))


@pytest.mark.parametrize("count", [0, -1])
async def test_a_request_of_none_is_an_error(count: int) -> None:
    probe = subscribed(from_aiter(range(10)), first=1)
    await turns(IDLE_TURNS)
    probe.subscription.request(count)
    assert isinstance(await probe.ended(), LocalError)
    probe.subscription.request(5)
    await turns(IDLE_TURNS)
    assert probe.items == [0]


async def test_a_request_of_none_from_within_an_item_is_an_error_too() -> None:
    probe = subscribed(from_aiter(range(10)))
    probe.each = -5
    probe.subscription.request(3)
    assert isinstance(await probe.ended(), LocalError)
    assert probe.items == [0]


async def test_after_cancel_nothing_comes_and_nothing_happens() -> None:
    probe = subscribed(from_aiter(range(10)), first=1)
    await turns(IDLE_TURNS)
    for _ in range(2):
        probe.subscription.cancel()
        probe.subscription.request(5)
        probe.subscription.request(0)
    await turns(IDLE_TURNS)
    assert (probe.items, probe.ends) == ([0], [])


async def test_cancel_from_within_an_item_is_the_end() -> None:
    probe = subscribed(from_aiter(range(10)))
    probe.cancel_at = 3
    probe.subscription.request(10)
    await turns(IDLE_TURNS)
    assert (probe.items, probe.ends) == ([0, 1, 2], [])


async def test_cancel_from_within_on_subscribe_starts_nothing() -> None:
    class Refusing(Probe):
        def on_subscribe(self, subscription: object) -> None:
            super().on_subscribe(subscription)  # type: ignore[arg-type]
            self.subscription.cancel()

    probe = Refusing()
    from_aiter(range(10)).subscribe(probe)
    probe.subscription.request(1)
    await turns(IDLE_TURNS)
    assert (probe.items, probe.ends) == ([], [])


async def test_demand_is_capped_at_unbounded() -> None:
    probe = subscribed(from_aiter(range(10)), first=UNBOUNDED)
    probe.subscription.request(UNBOUNDED)
    assert isinstance(probe.subscription, TaskSubscription)
    assert probe.subscription.demand == UNBOUNDED
    assert await probe.ended() == "complete"


async def test_a_subscriber_that_raises_has_canceled(caplog: pytest.LogCaptureFixture) -> None:
    class Raising(Probe):
        def on_next(self, item: object) -> None:
            super().on_next(item)
            raise KeyError(item)

    probe = Raising(first=5)
    from_aiter(range(10)).subscribe(probe)
    await turns(IDLE_TURNS)
    assert (probe.items, probe.ends) == ([0], [])
    assert "a subscriber failed on an item" in caplog.text


async def test_a_subscriber_that_raises_at_the_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Raising(Probe):
        def on_complete(self) -> None:
            super().on_complete()
            raise KeyError

    probe = Raising(first=5)
    from_aiter([]).subscribe(probe)
    await until(lambda: "on the end of its stream" in caplog.text)
    assert probe.ends == ["complete"]


async def test_unreferenced_subscription_is_not_collected() -> None:
    from_aiter([1]).subscribe(Probe())
    await turns(IDLE_TURNS)
    gc.collect()
    [task] = asyncio.all_tasks() - {asyncio.current_task()}
    assert not task.done()
    task.cancel()
    await asyncio.wait((task,))


async def test_canceled_subscriber_is_released() -> None:
    probe = subscribed(from_aiter(range(5)), first=1)
    assert isinstance(probe.subscription, TaskSubscription)
    probe.subscription.cancel()
    assert probe.subscription.subscriber is None
