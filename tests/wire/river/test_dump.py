from __future__ import annotations

import msgspec
import pytest

from tests.river.peers import recorded, transcript, transcripts
from weirpool import LocalError, Payload, Settings
from weirpool.errors import FrameError
from weirpool.protocols import client_session
from weirpool.texts import shown_line
from weirpool.wire.framing import framed
from weirpool.wire.river.dump import CONTROLS, RiverDump, line, read_messages
from weirpool.wire.river.values import encode_value

MESSAGE = {"id": "m", "from": "c", "to": "SERVER", "seq": 1, "ack": 2, "streamId": "s", "controlFlags": 0}


def test_messages_are_shown_with_field_names() -> None:
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


def test_line_hides_secrets() -> None:
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


def test_names_that_are_not_strings_are_shown() -> None:
    payload = {"type": "HANDSHAKE_REQ", 7: "seven", b"\x1b": 1, None: None}
    shown = line(msgspec.msgpack.encode(MESSAGE | {"payload": payload}))
    assert shown.endswith(" 7=seven b'\\x1b'=1 None=null")


def test_truncated_or_malformed_messages_are_refused() -> None:
    with pytest.raises(FrameError, match="the message is incomplete"):
        list(read_messages(b"\0\0\0\xff{}", "json", prefixed=True))
    with pytest.raises(FrameError):
        list(read_messages(b"{}", "json"))


def greeting(codec: str = "json") -> bytes:
    """Return the first output of a client."""
    setup = Payload(b'{"token":"geheim"}' if codec == "json" else b"\xa6geheim")
    session = client_session("river", Settings(), setup=setup, random=bytes(16), options={"codec": codec})
    session.link_up(0)
    return b"".join(session.take_output())


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_reader_shows_messages_from_split_input(codec: str) -> None:
    dump, data = RiverDump("river-2.0"), greeting(codec)
    reader = dump.reader("", False, False)
    (text,) = [text for at in range(len(data)) for text in reader.lines(data[at : at + 1])]
    assert text.startswith("HANDSHAKE_REQ stream=")
    assert "geheim" not in text and "session-" not in text and "metadata=hidden" in text
    assert "geheim" in dump.reader("", False, True).lines(data)[0]


def test_reader_continues_after_a_malformed_message() -> None:
    bad, good = RiverDump("river-2.0").reader("", False, False).lines(b"\0\0\0\x02{}" + greeting())
    assert bad.startswith("invalid message of 2 bytes: ") and good.startswith("HANDSHAKE_REQ")


def test_reader_skips_a_message_too_long_to_show() -> None:
    reader = RiverDump("river-2.0").reader("", False, False)
    lines = reader.lines((1 << 27).to_bytes(4, "big"))
    for _ in range(128):
        lines += reader.lines(bytes(1 << 20))
    [long, good] = lines + reader.lines(greeting())
    assert long == "a message of 134217728 bytes is too long to be shown" and good.startswith("HANDSHAKE_REQ")


@pytest.mark.parametrize("prefix", [0, 4])
@pytest.mark.parametrize("name", [name for name in transcripts() if "-raw-" not in name])
def test_objects_round_trip(name: str, prefix: int) -> None:
    dump, codec = RiverDump("river-2.0"), name.rpartition(".")[2]
    encode = dump.encoder(prefix, codec)
    for event in transcript(name)["events"]:
        if event["kind"] == "frame":
            (shown,) = read_messages(recorded(event), codec)
            written = encode(shown)
            (again,) = dump.frames(written, prefix, codec)
            assert again.pop("length", len(written)) == len(written) - prefix or not prefix
            assert again == shown


def test_traces_are_shown_and_written() -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": ""}
    shown = MESSAGE | {"controlFlags": ["OPEN"], "payload": None, "tracing": trace}
    (again,) = read_messages(RiverDump("river-2.0").encoder(0, "json")(shown), "json")
    assert again == shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seq": -1}, "seq"),
        ({"id": 1}, "id"),
        ({"controlFlags": ["SHUT"]}, "SHUT"),
        ({"colour": "red"}, "colour"),
        ({"payload": float("nan")}, "River carries JSON"),
    ],
)
def test_invalid_objects_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(LocalError, match=message):
        RiverDump("river-2.0").encoder(0, "msgpack")(MESSAGE | {"controlFlags": [], "payload": 1} | change)
