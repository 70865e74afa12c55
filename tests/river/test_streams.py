from __future__ import annotations

from collections import deque

from penstock.core.halves import DONE, OPEN
from penstock.events import Completed
from penstock.kinds import Kind
from penstock.river.streams import RiverStreams


def test_streams_have_numbers_and_names() -> None:
    streams = RiverStreams(10)
    stream = streams.open("abc", b'"abc"', Kind.CALL, OPEN, DONE)
    assert streams.get(stream.number) is streams.named("abc") is stream
    assert streams.sending(stream.number) is None
    stream.outbound = OPEN
    assert streams.sending(stream.number) is stream
    assert streams.all() == [stream] and len(streams) == 1
    streams.close(stream)
    assert streams.get(stream.number) is streams.named("abc") is None


def test_a_stream_with_something_held_is_not_over() -> None:
    stream = RiverStreams(1).open("a", b'"a"', Kind.STREAM, DONE, DONE)
    assert stream.over()
    stream.held = deque([Completed(stream.number)])
    assert not stream.over()


def test_the_oldest_names_are_forgotten_first() -> None:
    streams = RiverStreams(2)
    for name in ("a", "b", "a", "c"):
        streams.finish(name)
    assert [streams.is_finished(name) for name in "abc"] == [True, False, True]
    streams.open("a", b'"a"', Kind.CALL, OPEN, OPEN)
    assert not streams.is_finished("a")
