from __future__ import annotations

import asyncio

from tests.sim import clockwork
from weirpool.feeds.pace import SHORTEST, Pace


async def turns(pace: Pace, count: int) -> list[float]:
    """Let feeds connect; return when they did, in the order in which they asked."""
    loop = asyncio.get_running_loop()
    begun, times = loop.time(), [0.0] * count

    async def feed(number: int) -> None:
        await pace.turn()
        times[number] = loop.time() - begun

    await asyncio.gather(*map(feed, range(count)))
    return times


def test_feeds_connect_one_after_the_other() -> None:
    times = clockwork.run(turns(Pace(), 1_000))
    assert times == sorted(times)
    assert abs(times[-1] - 1_000 * SHORTEST) < 0.1


def test_late_loop_begins_fewer_connections_until_it_has_caught_up() -> None:
    async def main() -> tuple[list[float], list[float], list[float]]:
        pace, loop = Pace(), asyncio.get_running_loop()
        assert isinstance(loop, clockwork.Clockwork)

        async def starve() -> None:
            while True:
                await asyncio.sleep(0.02)
                loop._time += 0.2

        starving = asyncio.create_task(starve())
        late = await turns(pace, 100)
        starving.cancel()
        return late, await turns(pace, 20), await turns(pace, 100)

    late, recovering, again = clockwork.run(main())
    assert late == sorted(late)
    # Without heed, three feeds begin in each turn of the loop.
    assert late[-1] > 100 * 0.19
    assert recovering[-1] < 3.0
    assert again[-1] < 100 * SHORTEST + 0.5


def test_feed_that_stops_while_it_waits_gives_its_turn_to_the_next() -> None:
    async def main() -> None:
        pace = Pace()
        first, second = asyncio.create_task(pace.turn()), asyncio.create_task(pace.turn())
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert first.cancelled()

    clockwork.run(main())
