from __future__ import annotations

from weirpool.core.halves import DONE, OPEN
from weirpool.kinds import Kind
from weirpool.river.streams import RiverStreams


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


def test_oldest_names_are_forgotten_first() -> None:
    streams = RiverStreams(2)
    for name in ("a", "b", "a", "c"):
        streams.finish(name)
    assert [name in streams.finished for name in "abc"] == [True, False, True]
    streams.open("a", b'"a"', Kind.CALL, OPEN, OPEN)
    assert "a" not in streams.finished
