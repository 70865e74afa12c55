from __future__ import annotations

import pytest

from tests.builds import Build
from tests.rsocket.test_inbound import FOLLOWS, NEXT, Receiving


def test_too_many_stray_frames_end_the_session(build: Build) -> None:
    # THREATS 42
    receiving = Receiving(build, max_stray_frames=5)
    receiving.run(99, b"1", b"2", b"3")
    receiving.item(99, NEXT)
    receiving.item(99, 0)
    with pytest.raises(receiving.errors.LimitExceeded, match=r"max_stray_frames \(5\)"):
        receiving.item(99, NEXT)
    assert receiving.events == []


def test_items_in_flight_after_cancel_are_expected(build: Build) -> None:
    receiving = Receiving(build, max_stray_frames=1)
    stream = receiving.streams.get(receiving.stream("STREAM", 100))
    receiving.strays.expect_late(stream)
    receiving.strays.remove_stream(stream)
    for _ in range(100):
        receiving.item(stream.id, NEXT)
    # All requested items have arrived, so later items are strays.
    receiving.item(stream.id, NEXT)
    with pytest.raises(receiving.errors.LimitExceeded, match=r"max_stray_frames \(1\)"):
        receiving.item(stream.id, NEXT)


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
    replay = build.module("penstock.core.replay").Replay(100_000, 3)
    replay.keep(bytes(kept), kept, True)
    receiving.outbound.replay = replay
    stream = receiving.stream("STREAM", 1)
    receiving.item(stream, NEXT | FOLLOWS, b"a" * 5_000)
    assert receiving.strays.shed(receiving.errors.LimitExceeded("too much"))
    assert (replay.held == 0, stream in receiving.strays.partials) == (is_dropped, is_dropped)


def test_output_is_shed_without_unfinished_items(build: Build) -> None:
    receiving = Receiving(build)
    replay = build.module("penstock.core.replay").Replay(100_000, 3)
    replay.keep(b"output", 6, True)
    receiving.outbound.replay = replay
    assert receiving.strays.shed(receiving.errors.LimitExceeded("too much"))
    assert replay.first == 6
    assert not receiving.strays.shed(receiving.errors.LimitExceeded("too much"))


def test_items_in_flight_after_a_refusal_are_expected(build: Build) -> None:
    receiving = Receiving(build, max_stray_frames=1)
    stream = receiving.streams.get(receiving.stream("STREAM", 50))
    receiving.strays.refuse(stream, 0x204, receiving.errors.ProtocolError("no"))
    for _ in range(51):
        receiving.item(stream.id, NEXT)
    with pytest.raises(receiving.errors.LimitExceeded, match=r"max_stray_frames \(1\)"):
        receiving.item(stream.id, NEXT)
