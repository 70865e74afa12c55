from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire
from tests.wire.strategies import frames, made


@given(frame=frames, before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_every_frame_is_read_back(wire: Wire, frame: tuple[str, dict[str, Any]], before: bytes, after: bytes) -> None:
    layouts = wire.layouts
    written = made(wire, frame)
    raw = layouts.write_frame(layouts.RSOCKET_V1, written)
    read = layouts.read_frame(layouts.RSOCKET_V1, before + raw + after, len(before), len(before) + len(raw))
    assert read == written
    assert type(read) is type(written)
    assert layouts.write_frame(layouts.RSOCKET_V1, read) == raw


@given(frame=frames, data=st.data())
def test_truncated_frame_is_a_shorter_frame_or_an_error(
    wire: Wire, frame: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    layouts = wire.layouts
    raw = layouts.write_frame(layouts.RSOCKET_V1, made(wire, frame))
    end = data.draw(st.integers(6, len(raw)))
    try:
        read = layouts.read_frame(layouts.RSOCKET_V1, raw, 0, end)
    except wire.errors.FrameError as error:
        assert 6 <= error.offset <= end
        assert error.ignorable is bool(raw[4] & 2)
    else:
        assert raw.startswith(layouts.write_frame(layouts.RSOCKET_V1, read)[6:], 6)


def test_table_has_every_frame_type(wire: Wire) -> None:
    assert set(wire.layouts.RSOCKET_V1) == {type for type in wire.frames.FrameType if type <= wire.frames.FrameType.EXT}


def test_new_frames_have_their_type(wire: Wire) -> None:
    for type, layout in wire.layouts.RSOCKET_V1.items():
        assert layout.new(type).type == type


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("SetupFrame", {"major": 65536}, "major of SETUP is 65536"),
        ("SetupFrame", {"keepalive_ms": 2**31}, "keepalive_ms of SETUP"),
        ("SetupFrame", {"token": bytes(65536)}, "the length of token of SETUP is 65536"),
        ("SetupFrame", {"data_mime": bytes(256)}, "the length of data_mime of SETUP is 256"),
        ("LeaseFrame", {"ttl_ms": -1}, "ttl_ms of LEASE is -1"),
        ("Frame", {"type": 4, "stream_id": 2**31}, "the stream id of REQUEST_RESPONSE"),
        ("Frame", {"type": 4, "flags": 0x400}, "the flags of REQUEST_RESPONSE"),
        ("Frame", {"type": 6, "request_n": 2**31}, "request_n of REQUEST_STREAM"),
        ("Frame", {"type": 10, "metadata": bytes(2**24)}, "the length of the metadata of PAYLOAD"),
        ("Frame", {"type": 9, "data": b"d"}, "CANCEL cannot carry data"),
        ("Frame", {"type": 9, "metadata": b""}, "CANCEL cannot carry metadata"),
        ("Frame", {"type": 12, "data": b"d"}, "METADATA_PUSH cannot carry data"),
        ("Frame", {"type": 64}, "a frame type is 64"),
        ("Frame", {"type": -1}, "a frame type is -1"),
        ("Frame", {"type": 1}, "a Frame cannot have type SETUP; use SetupFrame"),
        ("ErrorFrame", {"code": 2**32}, "code of ERROR"),
        ("ErrorFrame", {"metadata": b"m"}, "ERROR cannot carry metadata"),
        ("ResumeOkFrame", {"last_received_client_position": -1}, "last_received_client_position of RESUME_OK"),
    ],
)
def test_values_out_of_range_are_refused_by_name(
    wire: Wire, name: str, arguments: dict[str, Any], message: str
) -> None:
    frame = made(wire, (name, arguments))
    with pytest.raises(wire.errors.LocalError, match=message):
        wire.layouts.write_frame(wire.layouts.RSOCKET_V1, frame)


def test_flags_of_optional_fields_follow_from_the_fields(wire: Wire) -> None:
    frames, layouts = wire.frames, wire.layouts
    frame = frames.SetupFrame(token=b"t", metadata=b"m")
    frame.token = frame.metadata = None
    read = layouts.read_frame(layouts.RSOCKET_V1, raw := layouts.write_frame(layouts.RSOCKET_V1, frame), 0, len(raw))
    assert read.flags == 0
    frame.metadata = b""
    assert layouts.write_frame(layouts.RSOCKET_V1, frame)[4:6] == b"\x05\x00"
