from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from weirpool import LocalError
from weirpool.journal import rhythm
from weirpool.journal.committer import Committer
from weirpool.journal.rhythm import LARGEST_LINGER, LINGER, SMALL_BYTES, SMALL_ROWS, Rhythm, linger_of


class Link:
    """A stream whose link is read or not."""

    def __init__(self) -> None:
        self.read = asyncio.Event()
        self.read.set()

    def pause(self) -> None:
        self.read.clear()

    def resume(self) -> None:
        self.read.set()


def test_many_feeds_linger_longer() -> None:
    assert [linger_of(feeds) for feeds in (1, 20, 60, 100, 10_000)] == [
        LINGER, LINGER, 0.15, LARGEST_LINGER, LARGEST_LINGER
    ]  # fmt: skip


async def test_the_linger_depends_on_the_feeds_of_the_process(tmp_path: Path) -> None:
    committer = Committer(tmp_path)
    shared, alone, fixed = Rhythm(None, committer), Rhythm(None, None), Rhythm(0.2, committer)
    with committer.feed():
        committer._feeds += 79
        assert (shared.seconds, alone.seconds, fixed.seconds) == (0.2, LINGER, 0.2)
    await committer.close()


@pytest.mark.parametrize("linger", [-0.1, 5.1])
def test_a_linger_is_limited(linger: float) -> None:
    with pytest.raises(LocalError, match="between 0 and 5 seconds"):
        Rhythm(linger, None)


async def test_after_a_small_batch_nothing_is_read_until_the_next_tick() -> None:
    link, loop = Link(), asyncio.get_running_loop()
    one, two = Rhythm(0.02, None), Rhythm(0.02, None)
    await one.gather(link, 10, 1_000)
    assert not link.read.is_set()
    other = Link()
    await two.gather(other, 10, 1_000)
    async with asyncio.timeout(10):
        await link.read.wait()
        await other.read.wait()
    # Both have the same ticks, give or take what a timer is late.
    assert loop.time() % 0.02 < 0.02


async def test_a_large_batch_is_not_held_up() -> None:
    link = Link()
    await Rhythm(5.0, None).gather(link, SMALL_ROWS, SMALL_BYTES)
    await Rhythm(0.0, None).gather(link, 1, 1)
    assert link.read.is_set()


async def test_after_a_full_read_more_is_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(rhythm.asyncio, "sleep", sleep)
    link = Link()
    await Rhythm(0.5, None).gather(link, 10, SMALL_BYTES)
    assert (slept, link.read.is_set()) == ([0.5], True)


async def test_a_tick_can_be_forgotten() -> None:
    link = Link()
    rhythm = Rhythm(5.0, None)
    await rhythm.gather(link, 1, 1)
    tick = rhythm._tick
    assert tick is not None and rhythm._ticks._due[tick]
    rhythm.stop()
    rhythm.stop()
    assert not rhythm._ticks._due[tick]


async def test_a_tick_during_an_append_is_made_up_for() -> None:
    link, other = Link(), Link()
    slow, quick = Rhythm(0.02, None), Rhythm(0.02, None)
    await slow.gather(link, 10, 1_000)
    slow._ring()
    assert not link.read.is_set()
    slow.appended()
    assert link.read.is_set()
    # The tick was missed, so there is none to wait for.
    assert slow._tick is None
    await quick.gather(other, 10, 1_000)
    quick.appended()
    assert not other.read.is_set()
    quick._ring()
    assert other.read.is_set()
    quick.stop()


async def test_a_long_append_does_not_silence_the_link() -> None:
    link = Link()
    rhythm = Rhythm(0.01, None)
    await rhythm.gather(link, 10, 1_000)
    async with asyncio.timeout(10):
        await link.read.wait()
    assert rhythm._tick is None
    rhythm.appended()
    assert link.read.is_set()
