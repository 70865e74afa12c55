from __future__ import annotations

from dataclasses import fields

from penstock.rsocket.dialect import RSOCKET_1_0, Dialect
from penstock.wire.layouts import HEADER_BYTES


def test_a_dialect_is_a_few_values() -> None:
    # More than these would be state, and state makes another family.
    assert len(fields(Dialect)) <= 12


def test_its_own_version_is_accepted() -> None:
    assert RSOCKET_1_0.version in RSOCKET_1_0.accepted
    assert RSOCKET_1_0.min_frame_bytes == HEADER_BYTES


def test_its_codec_makes_frames_with_its_prefix() -> None:
    frame = RSOCKET_1_0.codec().cancel_frame(1)
    assert int.from_bytes(frame[: RSOCKET_1_0.prefix_bytes], "big") == len(frame) - RSOCKET_1_0.prefix_bytes
