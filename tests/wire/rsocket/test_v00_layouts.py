from __future__ import annotations

import pytest

from tests.wire.conftest import Wire
from tests.wire.rsocket.test_v00 import decoded


# THREATS 13, 19.
def test_unknown_types_need_ignore_and_unknown_flags_do_not(wire: Wire) -> None:
    frame = decoded(wire, "00 80 0077 0000000000000001 6162")
    assert (wire.dump.to_object(frame, "reactivesocket-0.0")["type"], frame.data) == ("0x0077", b"ab")
    assert wire.v00.encode(frame).hex() == "008000770000000000000001" + "6162"
    assert decoded(wire, "00 0f 0011 0000000000000001").flags == 0


def test_types_of_other_dialects_are_refused(wire: Wire) -> None:
    for frame in (wire.frames.KeepaliveFrame(), wire.frames.Frame(7, 1), wire.frames.ResumeFrame()):
        with pytest.raises(wire.errors.LocalError, match=r"ReactiveSocket 0\.0 does not have"):
            wire.v00.encode(frame)


@pytest.mark.parametrize("code", [0x202, 0x301, 0xFFFFFFFE])
def test_error_has_its_code_in_its_metadata(wire: Wire, code: int) -> None:
    encoded = wire.v00.encode(wire.frames.ErrorFrame(3, code, b"why"))
    assert b"[0x%03X]why" % code in encoded
    frame = decoded(wire, encoded.hex())
    assert (frame.code, frame.metadata, frame.data) == (code, b"[0x%03X]" % code, b"why")
    assert wire.v00.encode(frame) == encoded


@pytest.mark.parametrize("metadata", [None, b"[0x201]", b"[0x12]", b"[0x202] ", b"[0xabc]", b"md"])
def test_other_errors_have_the_most_general_code(wire: Wire, metadata: bytes | None) -> None:
    encoded = wire.v00.encode(wire.frames.ErrorFrame(3, 0x201, b"why", 0, metadata))
    frame = decoded(wire, encoded.hex())
    assert (frame.code, frame.metadata) == (0x201, metadata)
    assert wire.v00.encode(frame) == encoded


def test_metadata_of_a_user_precedes_the_code(wire: Wire) -> None:
    frame = decoded(wire, wire.v00.encode(wire.frames.ErrorFrame(3, 0x202, b"why", 0, b"mine")).hex())
    assert (frame.code, frame.metadata) == (0x201, b"mine")
