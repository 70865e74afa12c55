from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import vectors
from tests.wire.conftest import Wire
from tests.wire.strategies import frames, made
from tests.wire.vectors import Vector
from weirpool.texts import shown_line

VECTORS = [vector for vector in vectors.load() if vector.raw.hex() != vectors.LYING_METADATA]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.meaning[:60])
def test_vectors_are_shown_with_their_meaning(wire: Wire, vector: Vector) -> None:
    shown = [wire.dump.to_object(frame) for _, frame in wire.dump.read_frames(vector.raw, prefix=vector.prefix)]
    # Not METADATA, because that name is used for the metadata itself.
    flags = wire.dump.FLAG_NAMES.keys() - {"metadata"}
    for one, fact in zip(shown, vectors.facts(vector), strict=True):
        for name, value in fact.items():
            if name in flags:
                assert (name in one["flags"]) is value, name
            else:
                assert one[name] == (value.hex() if isinstance(value, bytes) else value), name


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.meaning[:60])
def test_vectors_are_shown_completely(wire: Wire, vector: Vector) -> None:
    for length, frame in wire.dump.read_frames(vector.raw, prefix=vector.prefix):
        shown = json.loads(json.dumps(wire.dump.to_object(frame)))
        again = wire.dump.from_object(shown | ({} if length is None else {"length": length}))
        assert wire.v1.encode(again) == wire.v1.encode(frame)


@given(frame=frames)
def test_objects_are_converted_back_to_frames(wire: Wire, frame: tuple[str, dict[str, Any]]) -> None:
    written = made(wire, frame)
    shown = json.loads(json.dumps(wire.dump.to_object(written)))
    read = wire.dump.from_object(shown)
    assert read == written
    assert type(read) is type(written)
    # The flags that follow from the fields may be omitted.
    implied = written.flags & (wire.frames.METADATA if written.metadata is not None else 0)
    implied |= wire.frames.RESUME if getattr(written, "token", None) is not None and written.type == 1 else 0
    del shown["flags"]
    assert wire.dump.from_object(shown).flags == implied


def test_setup_is_shown_field_by_field(wire: Wire) -> None:
    setup = wire.frames.SetupFrame(
        wire.frames.LEASE, 1, 0, 20_000, 90_000, b"\x01\xff", b"m/x", b"application/json", None, b"{}"
    )
    shown = {
        "type": "SETUP",
        "stream_id": 0,
        "flags": ["resume", "lease"],
        "major": 1,
        "minor": 0,
        "keepalive_ms": 20_000,
        "lifetime_ms": 90_000,
        "token": "01ff",
        "metadata_mime": "m/x",
        "data_mime": "application/json",
        "metadata": None,
        "data": "7b7d",
    }
    assert wire.dump.to_object(setup) == shown
    assert list(wire.dump.to_object(setup)) == list(shown)
    assert wire.dump.from_object(shown) == setup


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("000000012be00000026d6464", {"flags": ["ignore", "metadata", "follows", "complete", "next"]}),
        ("000000000c800000000000000005", {"flags": ["respond"], "position": 5, "data": ""}),
        ("0000000009000000000100000002", {"flags": ["metadata"], "metadata": "", "ttl_ms": 1, "number_of_requests": 2}),
        ("000000012c0000000301626f6f6d", {"flags": [], "code": 0x301, "data": "626f6f6d"}),
        ("00000001200000000007", {"flags": [], "request_n": 7}),
        ("00000001213f00000007", {"flags": ["0x13f"], "request_n": 7}),
        ("00000001283f61", {"flags": ["next", "0x01f"], "data": "61"}),
        ("00000000fd000000000561", {"flags": ["metadata"], "extended_type": 5, "data": "61"}),
        ("00000001aa0061", {"type": "0x2A", "flags": ["ignore"], "data": "61"}),
    ],
)
def test_only_fields_of_a_type_are_shown(wire: Wire, body: str, shown: dict[str, object]) -> None:
    ((length, frame),) = wire.dump.read_frames(bytes.fromhex(body))
    found = wire.dump.to_object(frame)
    assert length is None
    assert found | shown == found
    layout = wire.layouts.RSOCKET_V1.get(frame.type, wire.layouts.UNKNOWN)
    assert ("data" in found) is layout.data
    assert ("metadata" in found) is (layout.metadata is not wire.layouts.Metadata.NONE)


@pytest.mark.parametrize("body", ["00000001213f00000007", "00000001283f61", "0000000027ff"])
def test_undefined_flags_are_shown_and_converted_back(wire: Wire, body: str) -> None:
    ((_, frame),) = wire.dump.read_frames(bytes.fromhex(body))
    shown = wire.dump.to_object(frame)
    assert wire.v1.encode(wire.dump.from_object(shown)).hex() == body
    assert wire.dump.line(frame).count(f"flags={shown['flags'][-1]}") == 1


# ReactiveSocket 0.2: integers are signed. A peer may send a negative one, and the dump must not hide that.
@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("000000011900ffffffff00000161", {"request_n": -1}),
        ("000000012000ffffffff", {"request_n": -1}),
        ("00000001200080000007", {"request_n": -(2**31) + 7}),
        ("000000000800ffffffff80000000", {"ttl_ms": -1, "number_of_requests": -(2**31)}),
        ("000000000c80ffffffffffffffff", {"position": -1}),
        ("000000000c808000000000000005", {"position": -(2**63) + 5}),
        ("000000003400000000020000ffffffffffffffff8000000000000000", {"last_received_server_position": -1}),
        ("000000003800ffffffffffffffff", {"last_received_client_position": -1}),
        ("00000001fe00ffffffff", {"extended_type": -1}),
    ],
)
def test_negative_numbers_are_shown_and_converted_back(wire: Wire, body: str, shown: dict[str, object]) -> None:
    ((_, frame),) = wire.dump.read_frames(bytes.fromhex(body), "reactivesocket-0.2")
    found = wire.dump.to_object(frame, "reactivesocket-0.2")
    assert found | shown == found
    assert wire.v02.encode(wire.dump.from_object(found, "reactivesocket-0.2")).hex() == body


@pytest.mark.parametrize("stream_id", [2**63, 2**64 - 1])
def test_stream_ids_of_64_bits_are_shown_and_converted_back(wire: Wire, stream_id: int) -> None:
    body = f"00000016{stream_id:016x}"
    ((_, frame),) = wire.dump.read_frames(bytes.fromhex(body), "reactivesocket-0.0")
    found = wire.dump.to_object(frame, "reactivesocket-0.0")
    assert found["stream_id"] == stream_id
    assert f"stream={stream_id}" in wire.dump.line(frame, "reactivesocket-0.0")
    assert wire.v00.encode(wire.dump.from_object(found, "reactivesocket-0.0")).hex() == body
    with pytest.raises(wire.errors.LocalError, match="stream_id of CANCEL"):
        wire.dump.from_object(found | {"stream_id": 2**64}, "reactivesocket-0.0")


def test_reserved_bit_of_a_length_is_not_shown(wire: Wire) -> None:
    ((length, frame),) = wire.dump.read_frames(
        bytes.fromhex("80000010" + "00000016" + f"{7:016x}"), "reactivesocket-0.0", 4
    )
    assert (length, frame.stream_id) == (16, 7)


@pytest.mark.parametrize("flag", ["0x400", "0x020", "0xno", "0x-1"])
def test_invalid_bits_of_flags_are_refused(wire: Wire, flag: str) -> None:
    with pytest.raises(wire.errors.LocalError, match=f"{flag[:3]}"):
        wire.dump.from_object({"type": "PAYLOAD", "stream_id": 1, "flags": [flag]})


# THREATS 18.
@given(mime=st.binary(max_size=20))
def test_mime_type_that_is_not_text_is_preserved(wire: Wire, mime: bytes) -> None:
    frame = wire.frames.SetupFrame(metadata_mime=mime)
    assert wire.dump.from_object(json.loads(json.dumps(wire.dump.to_object(frame)))) == frame


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "must be an object, not list"),
        ({}, "type is None; it must be one of SETUP, LEASE"),
        ({"type": "NOPE"}, "type is 'NOPE'"),
        ({"type": 10}, "type is 10"),
        ({"type": "0xZZ"}, "type is '0xZZ'"),
        ({"type": "0x40"}, "a frame type is 64"),
        ({"type": "CANCEL", "stream_id": "1"}, "stream_id of CANCEL is '1'; it must be an integer"),
        ({"type": "CANCEL", "stream_id": True}, "stream_id of CANCEL is True"),
        ({"type": "CANCEL", "stream_id": -1}, "stream_id of CANCEL is -1"),
        ({"type": "CANCEL", "data": ""}, "CANCEL has no data; its fields are flags, length, stream_id, type"),
        ({"type": "CANCEL", "flags": ["next"]}, "CANCEL has no flag 'next'; its flags are ignore"),
        ({"type": "CANCEL", "flags": "ignore"}, "flags of CANCEL is 'ignore'; it must be an array"),
        ({"type": "PAYLOAD", "flags": [["next"]]}, "PAYLOAD has no flag"),
        ({"type": "PAYLOAD", "data": "0"}, "data of PAYLOAD is '0'; it must be a string of hex digits"),
        ({"type": "PAYLOAD", "data": 5}, "data of PAYLOAD is 5"),
        ({"type": "PAYLOAD", "metadata": "zz"}, "metadata of PAYLOAD is 'zz'"),
        ({"type": "REQUEST_N"}, "request_n of REQUEST_N is missing"),
        ({"type": "REQUEST_N", "request_n": 2**31}, "request_n of REQUEST_N is 2147483648"),
        ({"type": "REQUEST_N", "request_n": 1.5}, "request_n of REQUEST_N is 1.5; it must be an integer"),
        ({"type": "ERROR", "code": 2**32}, "code of ERROR"),
        ({"type": "RESUME", "major": 1, "minor": 0}, "token of RESUME is missing"),
        ({"type": "EXT", "extended_type": 2**80}, "extended_type of EXT"),
    ],
)
def test_invalid_objects_are_refused(wire: Wire, value: Any, message: str) -> None:
    with pytest.raises(wire.errors.LocalError, match=message.replace("(", "\\(")):
        wire.dump.from_object(value)


@pytest.mark.parametrize("mime", [5, "\ud800"])
def test_mime_type_must_be_text(wire: Wire, mime: object) -> None:
    setup = wire.dump.to_object(wire.frames.SetupFrame()) | {"data_mime": mime}
    with pytest.raises(wire.errors.LocalError, match="data_mime of SETUP is"):
        wire.dump.from_object(setup)


def test_dialects_are_known_by_name(wire: Wire) -> None:
    assert wire.dump.DIALECTS == ("rsocket-1.0", "reactivesocket-0.2", "reactivesocket-0.0")
    for refuse in (
        lambda: wire.dump.codec_of("rsocket"),
        lambda: wire.dump.to_object(wire.frames.Frame(9), "rsocket"),
        lambda: wire.dump.from_object({"type": "CANCEL"}, "rsocket"),
        lambda: wire.dump.line(wire.frames.Frame(9), "rsocket"),
        lambda: list(wire.dump.read_frames(b"", "rsocket")),
    ):
        with pytest.raises(wire.errors.LocalError, match=r"unknown dialect 'rsocket'; use one of rsocket-1\.0"):
            refuse()


def test_frames_are_read_with_their_length_prefix(wire: Wire) -> None:
    cancel, payload = wire.frames.Frame(9, 1), wire.frames.Frame(10, 1, 0x20, 0, None, b"data")
    raw = wire.v1.frame(cancel) + wire.v1.frame(payload)
    assert list(wire.dump.read_frames(raw, prefix=3)) == [(6, cancel), (10, payload)]
    inclusive = b"\0\0\0\x0a" + wire.v1.encode(cancel)
    assert list(wire.dump.read_frames(inclusive, prefix=4)) == [(10, cancel)]
    assert list(wire.dump.read_frames(b"", prefix=3)) == []


CANCEL = "000006000000012400"


@pytest.mark.parametrize(
    ("raw", "prefix", "offset", "message"),
    [
        ("", 0, 0, "shorter than its header"),
        ("0000000111000000106162", 0, 6, "metadata of 16 bytes"),
        ("0000060000", 3, 0, "the last frame is incomplete: it has only 5 bytes"),
        (CANCEL + "0000", 3, 9, "the last frame is incomplete: it has only 2 bytes"),
        (CANCEL + "000005", 3, 9, "a length of 5 bytes"),
        (CANCEL + "000006800000012400", 3, 12, "top bit"),
        (CANCEL + "00000b0000000111000000106162", 3, 18, "metadata of 16 bytes"),
    ],
)
def test_malformed_frames_are_reported_with_their_offset(
    wire: Wire, raw: str, prefix: int, offset: int, message: str
) -> None:
    with pytest.raises(wire.errors.FrameError, match=message) as caught:
        list(wire.dump.read_frames(bytes.fromhex(raw), prefix=prefix))
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("000000012860", "PAYLOAD stream=1 complete next"),
        ("0000000129200000026d6464617461", 'PAYLOAD stream=1 metadata next metadata="md"(2) data="data"(4)'),
        ("00000001281f", "PAYLOAD stream=1 flags=0x01f"),
        ("000000012c00000003011b5b324a", 'ERROR stream=1 code=0x301 data="\\x1b[2J"(4)'),
        ("000000000c800000000000000005", "KEEPALIVE stream=0 respond position=5"),
        ("00000001280022ff0ae2808e5c", 'PAYLOAD stream=1 data=""\\xff\\n\\u200e\\"(7)'),
    ],
)
def test_frame_is_one_line(wire: Wire, body: str, line: str) -> None:
    ((_, frame),) = wire.dump.read_frames(bytes.fromhex(body))
    assert wire.dump.line(frame) == line


@given(frame=frames)
def test_line_has_no_control_characters_and_is_short(wire: Wire, frame: tuple[str, dict[str, Any]]) -> None:
    line = wire.dump.line(made(wire, frame))
    assert shown_line(line) == line


def test_long_text_is_shortened(wire: Wire) -> None:
    line = wire.dump.line(wire.frames.Frame(10, 1, data="é".encode() * 1000))
    assert line == f'PAYLOAD stream=1 data="{"é" * 60}…"(2000)'


def test_show_replaces_fields_of_bytes(wire: Wire) -> None:
    asked: list[tuple[str, bytes]] = []

    def show(name: str, raw: bytes) -> str | None:
        asked.append((name, raw))
        return "hidden" if name == "metadata" else None

    frame = wire.frames.Frame(wire.frames.FrameType.PAYLOAD, 1, 0, 0, b"secret", b"open")
    assert wire.dump.line(frame, show=show) == 'PAYLOAD stream=1 metadata metadata=hidden data="open"(4)'
    assert asked == [("metadata", b"secret"), ("data", b"open")]
