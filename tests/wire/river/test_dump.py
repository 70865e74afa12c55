from __future__ import annotations

import pytest

from penstock.errors import FrameError
from penstock.texts import shown_line
from penstock.wire.framing import framed
from penstock.wire.river.dump import CONTROLS, line, read_messages
from penstock.wire.river.values import encode_value
from tests.river.peers import recorded, transcript, transcripts

MESSAGE = {"id": "m", "from": "c", "to": "SERVER", "seq": 1, "ack": 2, "streamId": "s", "controlFlags": 0}


def test_messages_are_shown_by_their_names() -> None:
    events = [event for event in transcript("21-bytes-and-bigint.msgpack")["events"] if event["kind"] == "frame"]
    data = [recorded(event) for event in events]
    (shown,) = read_messages(data[4], "msgpack")
    assert shown["controlFlags"] == ["OPEN", "CLOSE"]
    assert (shown["serviceName"], shown["procedureName"]) == ("demo", "bytes")
    assert shown["payload"]["n"] == {"$b": "9223372036854775808"}
    both = list(read_messages(framed(data[0]) + framed(data[1]), "msgpack", prefixed=True))
    assert [each["payload"]["type"] for each in both] == ["HANDSHAKE_REQ", "HANDSHAKE_RESP"]
    assert both[0]["length"] == len(data[0])


@pytest.mark.parametrize("name", [name for name in transcripts() if "raw" not in name])
def test_every_message_of_the_reference_is_one_line(name: str) -> None:
    for event in transcript(name)["events"]:
        if event["kind"] == "frame":
            shown = line(recorded(event))
            assert shown_line(shown) == shown and shown.split()[0] in ("DATA", *CONTROLS)
            assert ("HANDSHAKE_" in shown) == ("HANDSHAKE_" in str(recorded(event)))


def test_a_line_shows_what_is_not_secret() -> None:
    shake = {"type": "HANDSHAKE_REQ", "protocolVersion": "v2.0", "sessionId": "geheim", "metadata": {"token": "geheim"}}
    data = encode_value(MESSAGE | {"payload": shake}, "json")
    assert line(data) == "HANDSHAKE_REQ stream=s from=c to=SERVER protocolVersion=v2.0 sessionId=hidden metadata=hidden"
    assert line(data, secrets=True).endswith('sessionId=geheim metadata={"token":"geheim"}')
    asked = {"controlFlags": 10, "serviceName": "demo", "procedureName": "a\x1b[2J", "payload": {"n": b"x" * 60}}
    assert line(encode_value(MESSAGE | asked, "msgpack")) == (
        "DATA stream=s open close seq=1 ack=2 procedure=demo.a\\x1b[2J "
        'payload={"n":{"$t":"eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4…(65)'
    )
    beat = {"controlFlags": 1, "payload": {"type": "ACK"}}
    assert line(encode_value(MESSAGE | beat, "json")) == "ACK stream=s ack seq=1 ack=2"
    with pytest.raises(FrameError):
        line(b"{}")


def test_what_is_cut_or_none_is_refused() -> None:
    with pytest.raises(FrameError, match="should end at byte"):
        list(read_messages(b"\0\0\0\xff{}", "json", prefixed=True))
    with pytest.raises(FrameError):
        list(read_messages(b"{}", "json"))
