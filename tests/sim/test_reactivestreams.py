"""reactive-streams-io between two sessions, with the bytes cut in every way."""

from __future__ import annotations

import pytest

from tests.sim.pair import Cut
from tests.sim.reactive import CUT, make, opened
from weirpool import (
    ApplicationError,
    CreditExceeded,
    LocalError,
    Payload,
    PayloadRun,
    Settings,
    StreamClosed,
    UnsupportedKind,
)
from weirpool.kinds import Kind
from weirpool.reactivestreams.session import ReactiveStreamsSession


@CUT
def test_hello_then_a_stream_to_its_end(cut: Cut) -> None:
    pair = make(cut)
    assert (pair.client_sent, pair.server_sent) == (b"\x01\x00\x00", b"\x02\x00\x00")
    assert len(pair.events("client", "Established")) == len(pair.events("server", "Established")) == 1
    stream, there = opened(pair, 3, data=b"question")
    (request,) = pair.events("server", "Requested")
    assert (request.kind, request.route, request.payload, request.credit, request.done) == (
        Kind.STREAM, "ticks", Payload(b"question"), 3, True,
    )  # fmt: skip
    assert (stream, there) == (1, -1)
    run = PayloadRun.of([Payload(b"%d" % number) for number in range(10)])
    assert pair.server.send_run(there, run) == 3
    with pytest.raises(CreditExceeded):
        pair.server.send(there, Payload(b"too many"))
    pair.client.request(stream, 100)
    pair.drive()
    assert [event.count for event in pair.events("server", "CreditGranted")] == [100]
    assert pair.server.send_run(there, run, 3) == 7
    assert pair.server.send(there, Payload(b"last"), True) == 92
    pair.drive()
    assert pair.items("client", stream) == [b"%d" % number for number in range(10)] + [b"last"]
    assert [event.stream_id for event in pair.events("client", "Completed")] == [stream]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)
    with pytest.raises(StreamClosed):
        pair.server.send(there, Payload())
    with pytest.raises(StreamClosed):
        pair.client.send(stream, Payload())


@CUT
def test_a_call_is_the_first_item_and_then_cancel(cut: Cut) -> None:
    pair = make(cut)
    _stream, there = opened(pair, 0, Kind.CALL)
    assert pair.server.credit(there) == 1
    pair.server.send(there, Payload(b"answer"))
    pair.drive()
    (item,) = pair.events("client", "ItemReceived")
    assert (item.payload.data, item.done) == (b"answer", True)
    assert [event.done for event in pair.events("server", "Canceled")] == [True]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


@CUT
def test_both_sides_subscribe_with_the_same_ids(cut: Cut) -> None:
    pair = make(cut)
    ours, theirs = opened(pair)
    back = pair.server.open(Kind.STREAM, "back", Payload(), 5)
    pair.drive()
    (request,) = pair.events("client", "Requested")
    assert (ours, back, theirs, request.stream_id) == (1, 1, -1, -1)
    pair.client.send(-1, Payload(b"from the client"), True)
    pair.server.send(-1, Payload(b"from the server"), True)
    pair.drive()
    assert pair.items("client", 1) == [b"from the server"]
    assert pair.items("server", 1) == [b"from the client"]


@CUT
def test_errors_and_cancels(cut: Cut) -> None:
    pair = make(cut)
    stream, there = opened(pair)
    pair.server.fail(there, ApplicationError(0x201, "boom"))
    pair.drive()
    secret, hidden = opened(pair)
    pair.server.fail(hidden, KeyError("a secret"))
    pair.drive()
    errors = [event.error for event in pair.events("client", "Failed")]
    assert [(type(error), error.message) for error in errors] == [
        (ApplicationError, "boom"), (ApplicationError, "the handler failed"),
    ]  # fmt: skip
    third, there = opened(pair)
    pair.client.fail(third, KeyError("only a subscriber"))
    pair.client.cancel(third)
    pair.drive()
    assert [event.stream_id for event in pair.events("server", "Canceled")] == [there]
    pair.server.complete(there)
    pair.server.fail(there, KeyError())
    assert {stream, secret, third} == {1, 2, 3} and pair.server.open_streams == 0


@pytest.mark.parametrize("kind", [Kind.FIRE, Kind.UPLOAD, Kind.CHANNEL])
def test_what_has_no_word_here_is_refused_before_anything_is_sent(kind: Kind) -> None:
    pair = make()
    with pytest.raises(UnsupportedKind, match=kind.name.lower()):
        pair.client.open(kind, "ticks", Payload(), 1)
    with pytest.raises(UnsupportedKind, match="push"):
        pair.client.push(b"metadata")
    assert pair.client.take_output() == []


def test_misuse_is_told_and_nothing_is_sent() -> None:
    pair = make()
    for wrong in (
        lambda: pair.client.open(Kind.STREAM, "what?", Payload(), 1),
        lambda: pair.client.open(Kind.STREAM, "x", Payload(bytes(65_536)), 1),
        lambda: pair.client.open(Kind.STREAM, "x", Payload(), -1),
        lambda: pair.client.open(Kind.CALL, "x", Payload(b"", b"metadata")),
        lambda: pair.client.request(1, 0),
        lambda: pair.client.cancel(1, b"metadata"),
        lambda: ReactiveStreamsSession.client(Settings(), Payload(b"setup")),
        lambda: ReactiveStreamsSession.client(Settings(resume=True), Payload()),
        lambda: ReactiveStreamsSession.client(Settings(lease=True), Payload()),
    ):
        with pytest.raises(LocalError):
            wrong()
    assert (pair.client.take_output(), pair.client.open_streams) == ([], 0)
    assert (pair.client.checkpoint(1, 5), pair.client.streams()) == (None, [])
    pair.client.commit()
