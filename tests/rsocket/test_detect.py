from __future__ import annotations

import pytest

from weirpool import ProtocolError, Settings
from weirpool.rsocket.detect import detect, is_resume
from weirpool.rsocket.dialect import DIALECTS, REACTIVESOCKET_0_0, REACTIVESOCKET_0_2, RSOCKET_1_0, Dialect

# First frames of known peers, and of specifications: see tests/vectors.
V1 = "00001d 00000000 0400 0001 0000 00004e20 00015f90 03 6d2f78 03 642f79"
V1_AS_0_2 = "00001d 00000000 0400 0000 0002 00004e20 00015f90 03 6d2f78 03 642f79"
V02_STRICT = "00001a 00000000 0420 0000 0002 000001f4 0000ea60 03 6d2f78 03 642f79"
V02 = "00001e 00000000 0400 0000 0002 0000ea60 0003a980 05 7574662d38 05 7574662d38"
V00 = "0000002c 00 20 0001 0000000000000000 0a 746578742f706c61696e 10 6170706c69636174696f6e2f6a736f6e"
V00_LONG = "00000100 00 00 0001 0000000000000000 0a 746578742f706c61696e"
V00_CALL = "00000015 00 00 0011 0000000000000001 68656c6c6f"
V00_MESSAGE = "000028 00 60 0001 0000000000000000 0a 746578742f706c61696e"
DRAFT_01 = "00000024 0001 1000 00000000 00000002 0000ea60 0003a980 05 7574662d38"
RESUME = "000020 00000000 3400 0001 0000 0002 0102 0000000000000015 000000000000000c"
REQUEST = "000007 00000001 1000 78"
ALL = frozenset(DIALECTS)


def raw(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


@pytest.mark.parametrize(
    ("first", "dialect"),
    [
        (V1, RSOCKET_1_0),
        (V02, REACTIVESOCKET_0_2),
        (V02_STRICT, REACTIVESOCKET_0_2),
        # Version 0.2 is ReactiveSocket 0.2 unless the settings differ.
        (V1_AS_0_2, REACTIVESOCKET_0_2),
        (V00, REACTIVESOCKET_0_0),
        (V00_LONG, REACTIVESOCKET_0_0),
        (V00_CALL, REACTIVESOCKET_0_0),
        (RESUME, RSOCKET_1_0),
        (REQUEST, RSOCKET_1_0),
    ],
)
def test_layouts_determine_the_dialect_with_few_bytes(first: str, dialect: Dialect) -> None:
    # THREATS 24
    data = raw(first)
    found = [detect(data[:end], Settings(), ALL) for end in range(len(data) + 1)]
    known = [each for each in found if each is not None]
    assert found.index(dialect) <= 16
    assert found[found.index(dialect) :] == known == [dialect] * len(known)


def test_messages_have_the_same_prefix_in_all_dialects() -> None:
    found = detect(raw(V00_MESSAGE), Settings(), ALL)
    assert found is not None
    assert (found.name, found.codec().prefix_bytes) == (REACTIVESOCKET_0_0.name, 3)
    assert all(detect(raw(V00_MESSAGE)[:end], Settings(), ALL) is None for end in range(15))


@pytest.mark.parametrize("type", [2, 3, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x20, 0x21, 0x31, 0xFFFF])
def test_any_frame_of_0_0_determines_the_dialect(type: int) -> None:
    data = raw(f"00000010 00 00 {type:04x} 0000000000000001")
    assert detect(data, Settings(), ALL) is REACTIVESOCKET_0_0
    assert all(detect(data[:end], Settings(), ALL) is None for end in range(16))


@pytest.mark.parametrize(
    ("first", "needed"), [("000009 00000000 0400 010203", 9), ("00000a 00000000 0400 01020304", 13)]
)
def test_setup_is_detected_as_soon_as_its_version_cannot_follow(first: str, needed: int) -> None:
    found = [detect(raw(first)[:end], Settings(), ALL) for end in range(len(raw(first)) + 1)]
    assert found == [None] * needed + [RSOCKET_1_0] * (len(found) - needed)


@pytest.mark.parametrize(("first", "size"), [(V1, 0x1D), (V00, 0x2C)])
def test_first_frame_may_have_the_maximum_size(first: str, size: int) -> None:
    assert detect(raw(first), Settings(max_setup_frame_bytes=size), ALL) is not None
    with pytest.raises(ProtocolError, match="max_setup_frame_bytes"):
        detect(raw(first), Settings(max_setup_frame_bytes=size - 1), ALL)


def test_setting_selects_the_meaning_of_version_0_2() -> None:
    settings = Settings(served_0_2="rsocket-1.0")
    assert detect(raw(V1_AS_0_2), settings, ALL) is RSOCKET_1_0
    assert detect(raw(V02_STRICT), settings, ALL) is REACTIVESOCKET_0_2


def test_draft_0_1_is_named_regardless_of_its_version() -> None:
    with pytest.raises(ProtocolError, match=r"ReactiveSocket 0\.1, which is not supported; it claims version 0\.2"):
        detect(raw(DRAFT_01), Settings(), ALL)
    assert all(detect(raw(DRAFT_01)[:end], Settings(), ALL) is None for end in range(16))


@pytest.mark.parametrize(
    ("first", "served", "dialect"),
    [
        (V1, "reactivesocket-0.2", REACTIVESOCKET_0_2),
        (RESUME, "reactivesocket-0.2", REACTIVESOCKET_0_2),
        (REQUEST, "reactivesocket-0.2", REACTIVESOCKET_0_2),
        (V00, "reactivesocket-0.0", REACTIVESOCKET_0_0),
    ],
)
def test_listener_of_one_dialect_accepts_its_layout(first: str, served: str, dialect: Dialect) -> None:
    assert detect(raw(first), Settings(), {served}) is dialect


@pytest.mark.parametrize(("first", "served"), [(V1, "reactivesocket-0.0"), (V00, "reactivesocket-0.2")])
def test_listener_of_one_dialect_refuses_the_others(first: str, served: str) -> None:
    with pytest.raises(ProtocolError, match="which this server does not offer"):
        detect(raw(first), Settings(), {served})


@pytest.mark.parametrize(
    ("first", "what"),
    [
        ("00000003 00 00 0001 0000000000000000", "not RSocket"),
        ("ffffffff 00 00 0001 0000000000000000", "max_setup_frame_bytes"),
        ("7fffffff 00 00 0001 0000000000000000", "max_setup_frame_bytes"),
        ("0000002c 01 00 0001 0000000000000000", "SETUP has version 1 and stream 0, which must be 0"),
        ("0000002c 00 00 0001 0000000000000005", "SETUP has version 0 and stream 5"),
        ("0000002c 01 00 0001 0000000000000005", "not RSocket"),
        ("0000002c 01 00 0011 0000000000000001", "not RSocket"),
        ("0000002c 00 00 0077 0000000000000000", "not RSocket"),
        ("00000024 0001 1000 00000001 00000002", "not RSocket"),
        ("000005 00000001 1000 78", "not RSocket"),
        ("000007 80000001 1000 78", "not RSocket"),
        ("000007 00000001 ec00 78", "not RSocket"),
        ("ffffff 00000000 0400 00010000", "max_setup_frame_bytes"),
    ],
)
def test_invalid_first_frames_are_refused(first: str, what: str) -> None:
    # THREATS 4, 5, 10
    with pytest.raises(ProtocolError, match=what):
        detect(raw(first), Settings(), ALL)


def test_resume_is_distinguished_from_setup() -> None:
    assert is_resume(raw(RESUME))
    assert not is_resume(raw(V1))
    assert not is_resume(raw(RESUME.replace("00000000", "00000001", 1)))


@pytest.mark.parametrize("length", ["0000002c", "8000002c"])
def test_reserved_bit_of_a_length_is_ignored(length: str) -> None:
    # ReactiveSocket 0.0, Frame Header Format.
    assert detect(raw(V00.replace("0000002c", length, 1)), Settings(), ALL) is REACTIVESOCKET_0_0


def test_stream_ids_of_0_0_have_64_bits() -> None:
    assert detect(raw("00000010 00 00 0011 ffffffffffffffff"), Settings(), ALL) is REACTIVESOCKET_0_0


def test_version_of_resume_determines_its_dialect() -> None:
    # ReactiveSocket 0.2, RESUME Frame: positions are signed.
    resume = raw(RESUME.replace("0001 0000", "0000 0002"))
    found = [detect(resume[:end], Settings(), ALL) for end in range(len(resume) + 1)]
    assert found == [None] * 13 + [REACTIVESOCKET_0_2] * (len(found) - 13)
    assert detect(resume, Settings(served_0_2="rsocket-1.0"), ALL) is RSOCKET_1_0
