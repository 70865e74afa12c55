from __future__ import annotations

import pytest
from hypothesis import given

from tests.wire.conftest import Wire
from tests.wire.strategies import frames, made


@given(frame=frames)
def test_frames_are_equal_if_all_fields_are_equal(wire: Wire, frame: tuple[str, dict[str, object]]) -> None:
    one, other = made(wire, frame), made(wire, frame)
    assert one == other
    assert hash(one) == hash(other)
    for name in one.fields:
        other = made(wire, frame)
        value = getattr(other, name)
        setattr(other, name, b"?" + (value or b"") if value is None or isinstance(value, bytes) else value ^ 1)
        assert one != other


def test_frames_of_two_classes_are_never_equal(wire: Wire) -> None:
    assert wire.frames.Frame(8, 1) != wire.frames.RequestNFrame(1)
    assert wire.frames.Frame(8, 1) != 8


@given(frame=frames)
def test_frame_shows_all_its_fields(wire: Wire, frame: tuple[str, dict[str, object]]) -> None:
    shown = repr(made(wire, frame))
    assert shown.startswith(frame[0] + "(type=")
    for name, value in frame[1].items():
        if name != "flags":
            assert f"{name}={value!r}" in shown


def test_optional_fields_set_their_flags(wire: Wire) -> None:
    frames = wire.frames
    assert frames.Frame(4, 1).flags == 0
    assert frames.Frame(4, 1, metadata=b"").flags == frames.METADATA
    assert frames.SetupFrame().flags == 0
    assert frames.SetupFrame(token=b"", metadata=b"m").flags == frames.RESUME | frames.METADATA


@pytest.mark.parametrize(
    ("type", "name"), [(1, "SETUP"), (0x0A, "PAYLOAD"), (0x3F, "EXT"), (0, "0x00"), (0x2A, "0x2A")]
)
def test_unnamed_types_are_shown_in_hex(wire: Wire, type: int, name: str) -> None:
    assert wire.frames.type_name(type) == name
