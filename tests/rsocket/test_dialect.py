from __future__ import annotations

from dataclasses import fields

import pytest

from weirpool import Kind
from weirpool.rsocket.codes import Code
from weirpool.rsocket.dialect import DIALECTS, ENDLESS, REACTIVESOCKET_0_0, REACTIVESOCKET_0_2, RSOCKET_1_0, Dialect
from weirpool.wire.rsocket.frames import ErrorFrame, FrameType


def test_dialects_differ_in_their_values() -> None:
    # Dialects have no state.
    assert len(fields(Dialect)) <= 12


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_codec_has_the_prefix_of_the_dialect(dialect: Dialect) -> None:
    codec = dialect.codec()
    frame = codec.cancel_frame(1)
    body = codec.encode(codec.decode(frame, codec.prefix_bytes, len(frame)))
    counted = len(frame) if codec.prefix_bytes == 4 else len(body)
    assert int.from_bytes(frame[: codec.prefix_bytes], "big") == counted
    assert len(body) == codec.header_bytes


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_all_dialects_have_one_prefix_over_messages(dialect: Dialect) -> None:
    assert dialect.over_messages().codec().prefix_bytes == 3


def test_first_draft_has_no_channels_but_endless_streams() -> None:
    assert {Kind.UPLOAD, Kind.CHANNEL} & REACTIVESOCKET_0_0.requests.keys() == set()
    assert REACTIVESOCKET_0_0.requests[ENDLESS] == FrameType.REQUEST_SUB
    assert RSOCKET_1_0.requests[ENDLESS] == REACTIVESOCKET_0_2.requests[ENDLESS] == FrameType.REQUEST_STREAM


def test_first_draft_has_setup_error_with_other_codes() -> None:
    frame = REACTIVESOCKET_0_0.close_error(Code.REJECTED_SETUP, b"no")
    assert frame is not None
    assert (frame.type, frame.code, frame.data) == (FrameType.SETUP_ERROR, 0x100, b"no")
    assert REACTIVESOCKET_0_0.code_of(frame) == Code.REJECTED_SETUP
    assert REACTIVESOCKET_0_0.code_of(ErrorFrame(0, 0x201)) is None
    assert REACTIVESOCKET_0_0.close_error(Code.CANCELED, b"no") is None
    unknown = ErrorFrame(0, 0x77)
    unknown.type = int(FrameType.SETUP_ERROR)
    assert REACTIVESOCKET_0_0.code_of(unknown) == 0x77


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_text_of_a_close_is_not_null_terminated(dialect: Dialect) -> None:
    frame = dialect.close_error(Code.REJECTED_SETUP, b"no\0")
    assert frame is not None and frame.data == b"no"


def test_first_draft_announces_a_close_by_a_text() -> None:
    frame = REACTIVESOCKET_0_0.close_error(Code.CONNECTION_CLOSE, b"all streams are done")
    assert frame is not None
    assert (frame.type, frame.code, frame.data) == (FrameType.SETUP_ERROR, 0x100, b"the connection is closing")
    assert REACTIVESOCKET_0_0.code_of(frame) == Code.CONNECTION_CLOSE


@pytest.mark.parametrize("dialect", [RSOCKET_1_0, REACTIVESOCKET_0_2])
def test_other_dialects_use_error_frames_for_both(dialect: Dialect) -> None:
    frame = dialect.close_error(Code.CONNECTION_CLOSE, b"bye")
    assert frame is not None
    assert (frame.type, dialect.code_of(frame)) == (FrameType.ERROR, Code.CONNECTION_CLOSE)
