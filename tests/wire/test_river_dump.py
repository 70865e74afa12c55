from __future__ import annotations

import pytest

from penstock.errors import FrameError
from penstock.wire.river_dump import read_messages
from penstock.wire.river_framing import framed
from tests.river.peers import recorded, transcript


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


def test_what_is_cut_or_none_is_refused() -> None:
    with pytest.raises(FrameError, match="should end at byte"):
        list(read_messages(b"\0\0\0\xff{}", "json", prefixed=True))
    with pytest.raises(FrameError):
        list(read_messages(b"{}", "json"))
