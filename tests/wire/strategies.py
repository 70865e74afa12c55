"""Hypothesis strategies for frames: plain values, from which each build makes its own objects."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.wire.conftest import Wire

u16 = st.integers(0, 2**16 - 1)
u31 = st.integers(0, 2**31 - 1)
u32 = st.integers(0, 2**32 - 1)
u63 = st.integers(0, 2**63 - 1)
raw = st.binary(max_size=40)
metadata = st.none() | st.binary(max_size=20)
items = st.lists(st.tuples(raw, metadata), max_size=12)
"""Items of a run: data and metadata."""


def _flags(*bits: int) -> st.SearchStrategy[int]:
    """Return a strategy for known and unknown flags."""
    return st.lists(st.sampled_from((0x200, 0x01, 0x10, *bits))).map(lambda chosen: sum(set(chosen)))


def _frame(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(name), st.fixed_dictionaries(fields))


_BODY = {"metadata": metadata, "data": raw}
frames: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    _frame(
        "SetupFrame",
        **_BODY,
        flags=_flags(0x40),
        major=u16,
        minor=u16,
        keepalive_ms=u31,
        lifetime_ms=u31,
        token=st.none() | raw,
        metadata_mime=st.binary(max_size=255),
        data_mime=st.binary(max_size=255),
    ),
    _frame("LeaseFrame", ttl_ms=u31, number_of_requests=u31, metadata=metadata),
    _frame("KeepaliveFrame", flags=_flags(0x80, 0x100), position=u63, data=raw),
    _frame("Frame", type=st.sampled_from((4, 5)), stream_id=u31, flags=_flags(0x80), **_BODY),
    _frame("Frame", type=st.sampled_from((6, 7)), stream_id=u31, flags=_flags(0x80, 0x40), request_n=u31, **_BODY),
    _frame("RequestNFrame", stream_id=u31, request_n=u31, flags=_flags(0x100)),
    _frame("Frame", type=st.just(9), stream_id=u31, flags=_flags(0x100)),
    _frame("Frame", type=st.just(10), stream_id=u31, flags=_flags(0x80, 0x40, 0x20), **_BODY),
    _frame("ErrorFrame", stream_id=u31, code=u32, data=raw, flags=_flags(0x100)),
    _frame("Frame", type=st.just(12), stream_id=u31, metadata=raw),
    _frame(
        "ResumeFrame",
        token=raw,
        last_received_server_position=u63,
        first_available_client_position=u63,
        major=u16,
        minor=u16,
        flags=_flags(),
    ),
    _frame("ResumeOkFrame", last_received_client_position=u63, flags=_flags()),
    _frame("ExtFrame", stream_id=u31, extended_type=u31, data=raw, flags=_flags(0x100)),
    _frame("Frame", type=st.sampled_from((0, 0x2A)), stream_id=u31, flags=st.just(0x200), data=raw),
)
"""Frames of every type: the class, and its arguments."""


def made(wire: Wire, frame: tuple[str, dict[str, Any]]) -> Any:
    """Return the frame that one of `frames` describes."""
    name, arguments = frame
    return getattr(wire.frames, name)(**arguments)
