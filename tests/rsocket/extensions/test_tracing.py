from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import SpanContext, TraceFlags

from weirpool import FrameError, LocalError, TraceContext
from weirpool.rsocket.extensions.tracing import decode, encode

SPANS = st.integers(0, 2**64 - 1)
SAMPLED = st.sampled_from([None, True, False])
VALUES = st.builds(TraceContext, sampled=SAMPLED, debug=st.booleans()) | st.builds(
    TraceContext, st.integers(0, 2**128 - 1) | SPANS, SPANS, st.none() | SPANS, SAMPLED, st.booleans(), st.booleans()
)
ONE, TWO, THREE = (f"{number:016x}" for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("trace", "data"),
    [
        (TraceContext(1, 2, 3, sampled=True), "a4" + ONE + TWO + THREE),
        (TraceContext(1, 2, sampled=True), "a0" + ONE + TWO),
        (TraceContext(1, 2), "80" + ONE + TWO),
        (TraceContext(1, 2, sampled=False), "90" + ONE + TWO),
        (TraceContext(1, 2, debug=True), "c0" + ONE + TWO),
        (TraceContext(1, 2, 3, sampled=True, debug=True), "e4" + ONE + TWO + THREE),
        (TraceContext(1, 2, 0), "84" + ONE + TWO + "0" * 16),
        (TraceContext(1 << 64 | 2, 2, sampled=True), "a8" + ONE + TWO + TWO),
        (TraceContext(2**128 - 1, 2**64 - 1, 2**64 - 1, sampled=True), "ac" + "f" * 64),
        # 128 bits for an id of 64 bits.
        (TraceContext(1, 2, 3, sampled=True, wide=True), "ac" + "0" * 16 + ONE + TWO + THREE),
        # Only sampling: "a health check might set only the Not Sampled flag".
        (TraceContext(), "00"),
        (TraceContext(sampled=False), "10"),
        (TraceContext(sampled=True), "20"),
        (TraceContext(debug=True), "40"),
    ],
)
def test_each_flag(trace: TraceContext, data: str) -> None:
    assert encode(trace).hex() == data
    assert decode(bytes.fromhex(data)) == trace


@given(VALUES)
def test_encoded_values_are_decoded(trace: TraceContext) -> None:
    assert decode(encode(trace)) == trace


@given(st.binary(max_size=40))
def test_junk_is_only_an_error(junk: bytes) -> None:
    try:
        trace = decode(junk)
    except FrameError:
        return
    assert decode(encode(trace)) == trace


@pytest.mark.parametrize(
    ("data", "trace"),
    [
        ("30", TraceContext(sampled=True)),  # "Not Sampled" is ignored if "Sample" is set.
        ("13", TraceContext(sampled=False)),  # Unused bits are ignored.
        ("2c", TraceContext(sampled=True)),  # Sizes of ids are ignored without ids.
    ],
)
def test_flags_that_contradict_each_other(data: str, trace: TraceContext) -> None:
    assert decode(bytes.fromhex(data)) == trace


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "has no flags"),
        ("80", "has 1 bytes; with flags 0x80 it must have 17"),
        ("a4" + ONE + TWO, "has 17 bytes; with flags 0xA4 it must have 25"),
        ("a8" + ONE + TWO, "has 17 bytes; with flags 0xA8 it must have 25"),
        ("ac" + ONE + TWO + THREE, "has 25 bytes; with flags 0xAC it must have 33"),
        ("a0" + ONE + TWO + THREE, "has 25 bytes; with flags 0xA0 it must have 17"),
        ("2000", "has 2 bytes; with flags 0x20 it must have 1"),
    ],
)
def test_lengths_must_match_the_flags(data: str, message: str) -> None:
    with pytest.raises(FrameError, match=message):
        decode(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trace_id": 1}, "trace_id and span_id must both be given"),
        ({"span_id": 1}, "trace_id and span_id must both be given"),
        ({"parent_id": 1}, "require a trace_id"),
        ({"wide": True}, "require a trace_id"),
        ({"trace_id": 2**128, "span_id": 1}, "trace_id must be between 0 and 2"),
        ({"trace_id": 1, "span_id": 2**64}, "span_id must be between 0 and 2"),
        ({"trace_id": 1, "span_id": -1}, "span_id must be between 0 and 2"),
        ({"trace_id": 1, "span_id": 1, "parent_id": 2**64}, "parent_id must be between 0 and 2"),
    ],
)
def test_invalid_contexts_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(LocalError, match=message):
        TraceContext(**wrong)


def test_from_and_to_opentelemetry() -> None:
    span = SpanContext(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, False, TraceFlags(TraceFlags.SAMPLED))
    trace = TraceContext.from_w3c(span.trace_id, span.span_id, span.trace_flags)
    assert encode(trace).hex() == "a8" + "4bf92f3577b34da6a3ce929d0e0e4736" + "00f067aa0ba902b7"
    assert decode(encode(trace)).to_w3c() == (span.trace_id, span.span_id, span.trace_flags)


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans())
def test_w3c_ids_round_trip(trace_id: int, span_id: int, sampled: bool) -> None:
    trace = TraceContext.from_w3c(trace_id, span_id, int(sampled))
    assert decode(encode(trace)).to_w3c() == (trace_id, span_id, int(sampled))


def test_contexts_without_ids_have_no_w3c_form() -> None:
    assert TraceContext(1, 2, sampled=None).to_w3c() == (1, 2, 0)
    assert TraceContext(1, 2, sampled=False, debug=True).to_w3c() == (1, 2, 1)
    assert TraceContext(sampled=True).to_w3c() is None
    assert TraceContext(0, 2).to_w3c() is None
    assert TraceContext.from_w3c(1, 2, 0xFE).sampled is False
    for ids in ((0, 1), (1, 0)):
        with pytest.raises(LocalError, match="must not be 0"):
            TraceContext.from_w3c(*ids)
