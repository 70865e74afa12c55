"""Large responses that wait until the link accepts output."""

from __future__ import annotations

import asyncio

import pytest

import weirpool
from tests.aio.fakes import fake_exchanges
from tests.builds import Build
from tests.waiting import until
from weirpool import Payload, Service, Settings

SIZE = 90_000
SMALL = Settings(max_output_bytes=SIZE + 10_000, output_high_bytes=10_000, fragment_bytes=20_000)


class World:
    """A service whose handlers all respond at the same time."""

    def __init__(self) -> None:
        self.begun = 0
        self.answer = asyncio.Event()
        self.service = Service()
        self.service.call("large")(self._large)

    async def _large(self, request: Payload) -> bytes:
        self.begun += 1
        await self.answer.wait()
        return bytes(SIZE)


@pytest.mark.parametrize("canceled", [0, 4])
async def test_responses_wait_for_the_link_unless_they_are_canceled(canceled: int) -> None:
    # Together they are much larger than the output that may wait.
    world = World()
    async with weirpool.serve(world.service, "rsocket+memory://late", settings=SMALL) as server:
        async with weirpool.connect(server.urls[0], settings=SMALL) as peer:
            calls = [asyncio.ensure_future(peer.call("large")) for _ in range(8)]
            await until(lambda: world.begun == 8)
            world.answer.set()
            await calls[0]
            for call in calls[8 - canceled :]:
                call.cancel()
            assert [len((await call).data) for call in calls[: 8 - canceled]] == [SIZE] * (8 - canceled)
            assert peer.outstanding == 0


async def test_response_counts_until_it_is_canceled(build: Build) -> None:
    exchanges = fake_exchanges(build, asyncio.get_running_loop())
    handler = build.module("weirpool.aio.handlers").Handler(bytes, build.module("weirpool.kinds").Kind.CALL, "large")
    payload = build.module("weirpool.payload").Payload(bytes(SIZE))
    answer = build.module("weirpool.aio.late_answer").LateAnswer(exchanges, 1, payload, handler)
    assert exchanges.flow.account.held == answer.held == SIZE
    answer.canceled()
    assert exchanges.flow.account.held == answer.held == 0
    exchanges.flow.wake_writers()
    await asyncio.sleep(0)
    assert exchanges.session.told == [] and exchanges.failed == []
