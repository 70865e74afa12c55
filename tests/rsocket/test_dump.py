from __future__ import annotations

import pytest

from weirpool import Kind, LocalError, Payload, Settings
from weirpool.errors import FrameError
from weirpool.protocols import client_session
from weirpool.rsocket.dump import RSocketDump

CANCEL = {"type": "CANCEL", "stream_id": 1, "flags": []}


def output(protocol: str, messages: bool = False) -> bytes:
    """Return the first output of a client."""
    session = client_session(protocol, Settings(), setup=Payload(b"geheim"), messages=messages)
    session.link_up(0)
    session.open(Kind.CALL, "echo", Payload(b"one"), 1)
    return b"".join(session.take_output())


@pytest.mark.parametrize("version", ["rsocket-1.0", "reactivesocket-0.2", "reactivesocket-0.0"])
@pytest.mark.parametrize("framing", ["u24", "u32-inclusive"])
def test_frames_are_read_as_they_were_written(version: str, framing: str) -> None:
    dump = RSocketDump(version)
    prefix = dump.framings[framing]
    data = dump.encoder(prefix, "")(CANCEL)
    (found,) = dump.frames(data, prefix, "")
    assert found.pop("length") == len(data) - (prefix if prefix == 3 else 0)
    assert list(dump.frames(dump.encoder(0, "")(CANCEL), 0, "")) == [found]
    with pytest.raises(FrameError):
        list(dump.frames(data[:-1], prefix, ""))
    with pytest.raises(LocalError, match="type is"):
        dump.encoder(0, "")({})


@pytest.mark.parametrize("messages", [False, True])
@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0"])
def test_first_bytes_determine_the_dialect(protocol: str, messages: bool) -> None:
    data, anything = output(protocol, messages), RSocketDump("rsocket-1.0")
    assert anything.detected(data[:4], Settings()) is None
    found = anything.detected(data, Settings())
    assert found is not None
    lines = found.reader("", False, False).lines(data)
    assert [line.split()[0] for line in lines] == ["SETUP", "REQUEST_RESPONSE"]
    assert "geheim" not in "".join(lines)
    assert RSocketDump("reactivesocket-0.2").detected(b"GET / HTTP/1.1", Settings()) is None


def test_secrets_are_shown_on_request() -> None:
    (setup, _) = RSocketDump("rsocket-1.0").reader("", False, True).lines(output("rsocket"))
    assert "geheim" in setup


def test_reader_stops_when_frame_boundaries_are_lost() -> None:
    reader = RSocketDump("rsocket-1.0").reader("", False, False)
    assert "invalid frame of 6 bytes" in reader.lines(b"\0\0\6" + b"\xff" * 6)[0]
    assert "nothing more can be shown" in reader.lines(b"\0\0\1\0")[0]
    assert reader.lines(output("rsocket")) == []
