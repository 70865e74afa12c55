from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import drafts
from tests.wire.conftest import Wire
from tests.wire.drafts import Vector
from tests.wire.strategies import frames, made, metadata, raw, u31, u32

VECTORS = [vector for vector in drafts.load() if vector.dialect == "reactivesocket-0.2"]
DIALECT = "reactivesocket-0.2"


def decoded(wire: Wire, body: str) -> Any:
    raw = bytes.fromhex(body.replace(" ", ""))
    return wire.v02.decode(raw, 0, len(raw))


def shown(wire: Wire, vector: Vector) -> list[dict[str, Any]]:
    return [
        wire.dump.to_object(frame, vector.dialect)
        for _, frame in wire.dump.read_frames(vector.raw, vector.dialect, vector.prefix)
    ]


@pytest.mark.parametrize("vector", drafts.load(), ids=lambda vector: vector.name)
def test_draft_vectors_are_shown_with_their_meaning(wire: Wire, vector: Vector) -> None:
    facts = drafts.facts(vector)
    found = shown(wire, vector)
    assert len(found) == len(facts)
    for one, fact in zip(found, facts, strict=True):
        assert len(fact) > 1, "the meaning says nothing that is checked"
        for name, value in fact.items():
            if isinstance(value, bool):
                assert (name in one["flags"]) is value, name
            else:
                assert one[name] == (value.hex() if isinstance(value, bytes) else value), name


@pytest.mark.parametrize("vector", drafts.load(), ids=lambda vector: vector.name)
def test_vectors_of_the_drafts_encode_back_to_the_same_bytes(wire: Wire, vector: Vector) -> None:
    codec = wire.dump.codec_of(vector.dialect)
    again = b""
    for one in shown(wire, vector):
        frame = codec.encode(wire.dump.from_object(one, vector.dialect))
        again += wire.framing.prefixed(frame, vector.prefix) if vector.prefix else frame
    assert again == vector.raw


@given(frame=frames)
def test_common_frames_are_encoded_alike(wire: Wire, frame: tuple[str, dict[str, Any]]) -> None:
    written = made(wire, frame)
    if written.metadata is not None and written.type in (2, 12):
        # LEASE and METADATA_PUSH have a length before their metadata here.
        raw = wire.v02.encode(written)
        end = len(raw) - len(written.metadata)
        assert raw[end - 3 : end] == len(written.metadata).to_bytes(3, "big")
        assert raw[6 : end - 3] + raw[end:] == wire.v1.encode(written)[6:]
    elif not (written.type in (9, 11) and written.flags & wire.frames.METADATA):
        assert wire.v02.encode(written) == wire.v1.encode(written)


@given(code=u32, stream_id=u31, metadata=metadata, data=raw)
def test_errors_and_cancels_carry_metadata(
    wire: Wire, code: int, stream_id: int, metadata: bytes | None, data: bytes
) -> None:
    for frame in (
        wire.frames.ErrorFrame(stream_id, code, data, 0, metadata),
        wire.frames.Frame(9, stream_id, 0, 0, metadata),
        wire.frames.LeaseFrame(5, 6, metadata),
        wire.frames.Frame(12, 0, 0, 0, metadata),
    ):
        body = wire.v02.encode(frame)
        assert wire.v02.decode(b"!" + body + b"!", 1, 1 + len(body)) == frame


def test_strict_flag_is_shown(wire: Wire) -> None:
    setup = wire.frames.SetupFrame(wire.frames.STRICT, 0, 2, 500, 60_000)
    assert wire.dump.to_object(setup, DIALECT)["flags"] == ["strict"]
    # RSocket 1.0 does not define it.
    assert wire.dump.to_object(setup)["flags"] == ["0x020"]


# THREATS 15: the entire frame MUST be ignored, regardless of its flags.
@pytest.mark.parametrize(
    "body",
    [
        "00000001 1100 000010 6162",
        "00000001 2900 000001",
        "00000001 2500 ffffff",
        "00000001 2d00 00000202 000003 6162",
        "00000000 0900 00000001 00000002 000009",
        "00000000 3100 00",
        "00000001 1900 00000001 000002 61",
    ],
)
def test_frame_with_metadata_beyond_its_end_is_ignorable(wire: Wire, body: str) -> None:
    with pytest.raises(wire.errors.FrameError) as caught:
        decoded(wire, body)
    assert caught.value.ignorable


def test_frame_truncated_elsewhere_is_not_ignorable(wire: Wire) -> None:
    with pytest.raises(wire.errors.FrameError) as caught:
        decoded(wire, "00000001 1800 0000")
    assert not caught.value.ignorable


# THREATS 12.
def test_top_bit_of_a_stream_id_is_refused(wire: Wire) -> None:
    with pytest.raises(wire.errors.FrameError, match="top bit"):
        decoded(wire, "80000001 2400")


@given(body=st.binary(max_size=40))
def test_junk_only_raises_frame_errors(wire: Wire, body: bytes) -> None:
    try:
        frame = wire.v02.decode(body, 0, len(body))
    except wire.errors.FrameError:
        return
    assert len(wire.v02.encode(frame)) <= len(body) + 3
