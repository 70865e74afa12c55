from __future__ import annotations

import pytest

from penstock import Kind, Payload, Settings
from penstock.cli.framelines import RSocketWay, way_of
from penstock.protocols import client_session
from penstock.rsocket.dialect import RSOCKET_1_0


def output(protocol: str, codec: str = "json") -> bytes:
    """Return what a client writes when its link is up."""
    options = {"codec": codec} if protocol == "river" else {}
    setup = Payload(b'{"token":"geheim"}' if codec == "json" else b"\xa6geheim")
    if protocol == "reactive-streams":
        setup = Payload()
    session = client_session(protocol, Settings(), setup=setup, random=bytes(16), options=options)
    session.link_up(0)
    if protocol == "reactive-streams":
        session.open(Kind.STREAM, "count", Payload(b"3"), 5)
    return b"".join(session.take_output())


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_messages_of_river_are_whole_over_any_cut(codec: str) -> None:
    make = way_of("river", secrets=False)
    assert make is not None
    way, data = make(), output("river", codec)
    found = [text for at in range(len(data)) for text in way.lines(data[at : at + 1])]
    (line,) = found
    assert line.startswith("HANDSHAKE_REQ stream=")
    assert "geheim" not in line and "session-" not in line and "metadata=hidden" in line
    shown = way_of("river", secrets=True)
    assert shown is not None and "geheim" in shown().lines(data)[0]


def test_what_is_no_message_of_river_does_not_hide_the_next_one() -> None:
    make = way_of("river", secrets=False)
    assert make is not None
    bad, good = make().lines(b"\0\0\0\x02{}" + output("river"))
    assert bad.startswith("no message of 2 bytes: ") and good.startswith("HANDSHAKE_REQ")


def test_messages_of_reactive_streams_are_whole_over_any_cut() -> None:
    make = way_of("reactive-streams", secrets=False)
    assert make is not None
    way, data = make(), output("reactive-streams")
    found = [text for at in range(len(data)) for text in way.lines(data[at : at + 1])]
    assert [line.split()[0] for line in found] == ["clientHello", "subscribe"]
    (lost,) = way.lines(b"\xff" * 12)
    assert "nothing more can be shown" in lost
    assert way.lines(data) == []


def test_frames_of_rsocket_need_their_dialect() -> None:
    assert way_of("rsocket", secrets=False) is None
    (line,) = RSocketWay(RSOCKET_1_0, "", False).lines(output("rsocket"))
    assert line.startswith("SETUP") and "geheim" not in line


def test_a_message_too_long_to_be_shown_is_passed_over() -> None:
    make = way_of("river", secrets=False)
    assert make is not None
    way = make()
    lines = way.lines((1 << 27).to_bytes(4, "big"))
    for _ in range(128):
        lines += way.lines(bytes(1 << 20))
    [long, good] = lines + way.lines(output("river"))
    assert long == "a message of 134217728 bytes, which is too long to be shown" and good.startswith("HANDSHAKE_REQ")
