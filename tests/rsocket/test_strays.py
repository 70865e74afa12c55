from __future__ import annotations

import pytest

from tests.builds import Build
from tests.rsocket.test_inbound import FOLLOWS, NEXT, Receiving


def test_stray_frames_are_ignored(build: Build) -> None:
    # THREATS 42
    receiving = Receiving(build)
    receiving.run(99, b"1", b"2", b"3")
    receiving.item(99, NEXT)
    receiving.item(99, 0)
    assert (receiving.strays.ignored, receiving.events) == (5, [])


def test_overdue_fragments_are_dropped(build: Build) -> None:
    # THREATS 49
    receiving = Receiving(build, reassembly_timeout=60)
    stream = receiving.stream("STREAM", 2)
    receiving.item(stream, NEXT | FOLLOWS, b"a")
    receiving.strays.overdue(59.0)
    assert receiving.events == []
    receiving.strays.overdue(61.0)
    assert receiving.names() == ["Failed"]
    assert receiving.strays.partials == {}


def test_largest_part_is_shed(build: Build) -> None:
    receiving = Receiving(build)
    error = receiving.errors.LimitExceeded("too much")
    small, large = receiving.stream("STREAM", 1), receiving.stream("STREAM", 1)
    assert not receiving.strays.shed(error)
    receiving.item(small, NEXT | FOLLOWS, b"a")
    receiving.item(large, NEXT | FOLLOWS, b"a" * 5_000)
    assert receiving.strays.shed(error)
    assert [(event.stream_id, event.error) for event in receiving.events] == [(large, error)]
    assert list(receiving.strays.partials) == [small]


@pytest.mark.parametrize(("kept", "is_dropped"), [(10_000, True), (10, False)])
def test_larger_of_output_and_unfinished_items_is_shed(build: Build, kept: int, is_dropped: bool) -> None:
    receiving = Receiving(build)
    replay = build.module("weirpool.core.replay").Replay(100_000, 3)
    replay.keep(bytes(kept), kept, True)
    receiving.outbound.replay = replay
    stream = receiving.stream("STREAM", 1)
    receiving.item(stream, NEXT | FOLLOWS, b"a" * 5_000)
    assert receiving.strays.shed(receiving.errors.LimitExceeded("too much"))
    assert (replay.held == 0, stream in receiving.strays.partials) == (is_dropped, is_dropped)


def test_output_is_shed_without_unfinished_items(build: Build) -> None:
    receiving = Receiving(build)
    replay = build.module("weirpool.core.replay").Replay(100_000, 3)
    replay.keep(b"output", 6, True)
    receiving.outbound.replay = replay
    assert receiving.strays.shed(receiving.errors.LimitExceeded("too much"))
    assert replay.first == 6
    assert not receiving.strays.shed(receiving.errors.LimitExceeded("too much"))
