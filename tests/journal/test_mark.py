from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import JournalCorrupt
from weirpool.journal.mark import (
    MARK_BYTES,
    MAX_MARK_FILE_BYTES,
    MAX_TRIMMED_BYTES,
    Mark,
    MarkFile,
    decode_trimmed,
    encode_trimmed,
    newest,
)

NUMBERS = st.integers(0, 2**62)
HEAD = "ab" * 32


def slots(first: bytes, second: bytes = b"") -> bytes:
    """Return the file that holds these two slots."""
    return first.ljust(MAX_MARK_FILE_BYTES - MARK_BYTES, b"\0") + second


def mark(end: int) -> Mark:
    return Mark(0, 100 * end, end, HEAD)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_a_mark_has_one_length_and_comes_back(number: int, segment: int, offset: int, rows: int) -> None:
    mark = Mark(segment, offset, min(segment + rows, 2**62), HEAD)
    assert len(mark.encode(number)) == MARK_BYTES
    assert newest(mark.encode(number)) == newest(slots(b"", mark.encode(number))) == (number, mark)


def test_the_newer_slot_counts() -> None:
    for first, second in ((8, 9), (9, 8)):
        assert newest(slots(mark(first).encode(first), mark(second).encode(second))) == (9, mark(9))


@given(st.integers(0, MARK_BYTES - 1), st.integers(0, 2**60))
def test_a_torn_write_leaves_the_other_slot(cut: int, end: int) -> None:
    # THREATS 97
    old, before, new = mark(1).encode(1), mark(2).encode(2), Mark(0, end, end, "cd" * 32).encode(3)
    found = newest(slots(new[:cut] + old[cut:], before))
    assert found in ((2, mark(2)), newest(new))
    assert found == (2, mark(2)) or new[:cut] + old[cut:] == new


def test_every_flipped_bit_is_found() -> None:
    # THREATS 97
    sound = mark(3).encode(7)
    for offset in range(MARK_BYTES):
        for bit in range(8):
            damaged = bytearray(sound)
            damaged[offset] ^= 1 << bit
            assert newest(bytes(damaged)) is None


@pytest.mark.parametrize("data", [b"", b"junk", b"\0" * MAX_MARK_FILE_BYTES, mark(3).encode(1)[:-1]])
def test_what_is_no_mark(data: bytes) -> None:
    assert newest(data) is None


def test_a_mark_that_makes_no_sense_is_none() -> None:
    # THREATS 98: its checksum is sound, its numbers are not.
    for bad in (Mark(5, 0, 4, HEAD), Mark(0, 2**63, 0, HEAD), Mark(0, 0, 10**19, HEAD)):
        assert newest(bad.encode(1)) is None


def test_marks_are_written_to_both_slots_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "_durable"
    file = MarkFile(path, mark(0), fsync=True)
    for end in range(1, 6):
        file.write(mark(end))
        assert newest(path.read_bytes()) == (end + 1, mark(end))
        # If this write had been torn, the mark before it would count.
        start = path.read_bytes().index(mark(end).encode(end + 1))
        torn = bytearray(path.read_bytes())
        torn[start + 50] ^= 1
        assert newest(bytes(torn)) == (end, mark(end - 1))
    file.close()
    file.close()


def test_a_mark_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "_durable"
    for end in range(4):
        MarkFile(path, mark(end), fsync=False).close()
        assert newest(path.read_bytes()) == (end + 1, mark(end))
    MarkFile(path, mark(3), fsync=False).close()
    assert newest(path.read_bytes()) == (4, mark(3))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_write_that_fails_is_made_again_to_the_same_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "_durable"
    file = MarkFile(path, mark(0), fsync=False)
    pwrite = os.pwrite

    def half(fd: int, data: bytes, offset: int) -> int:
        if len(data) < MARK_BYTES:
            raise OSError(5, "Input/output error")
        return pwrite(fd, data[:80], offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        for _ in range(2):
            with pytest.raises(OSError, match="Input/output"):
                file.write(mark(1))
            assert newest(path.read_bytes()) == (1, mark(0))
    file.write(mark(1))
    assert newest(path.read_bytes()) == (2, mark(1))
    file.close()


@pytest.mark.parametrize("position", [0, 7, 1 << 62])
def test_a_position_comes_back(position: int) -> None:
    assert decode_trimmed(encode_trimmed(position, "log"), "log", "_trimmed") == position
    assert len(encode_trimmed(position, "log")) <= MAX_TRIMMED_BYTES


def test_every_flipped_bit_and_every_cut_is_found() -> None:
    # THREATS 97
    sound = encode_trimmed(1234, "log")
    spoiled = [sound[:size] for size in range(len(sound))]
    spoiled += [
        bytes([*sound[:at], sound[at] ^ 1 << bit, *sound[at + 1 :]]) for at in range(len(sound)) for bit in range(8)
    ]
    for data in spoiled:
        with pytest.raises(JournalCorrupt, match="position below which this log was trimmed"):
            decode_trimmed(data, "log", "_trimmed")


def test_another_log_s_file_is_not_taken() -> None:
    with pytest.raises(JournalCorrupt):
        decode_trimmed(encode_trimmed(5, "another"), "log", "_trimmed")
