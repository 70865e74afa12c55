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
