from __future__ import annotations

import hashlib
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from weirpool import JournalCorrupt
from weirpool.journal import Gap, gaps
from weirpool.journal.gaps import LATE, add, decode, encode, load, merge
from weirpool.journal.layout import GAPS
from weirpool.journal.storage import LogFolder

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def gap(position: int, **fields: object) -> Gap:
    return Gap(position, NOON + timedelta(microseconds=position), f"reason {position}", **fields)  # type: ignore[arg-type]


ALL = [gap(0), gap(7, previous=NOON), gap(9, lost=(4, 9)), gap(12, previous=NOON, lost=(10, 12))]


def test_gaps_are_kept_as_they_are(tmp_path: Path) -> None:
    assert load(tmp_path) == LogFolder.local(tmp_path).kept_gaps() == []
    add(tmp_path, ALL[2:])
    add(tmp_path, ALL[:2])
    assert load(tmp_path) == LogFolder.local(tmp_path).kept_gaps() == ALL
    assert (tmp_path / GAPS).stat().st_mode & 0o777 == 0o600


def test_gaps_are_added_once(tmp_path: Path) -> None:
    add(tmp_path, ALL)
    before = (tmp_path / GAPS).stat()
    add(tmp_path, ALL[1:3])
    add(tmp_path, [])
    after = (tmp_path / GAPS).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_merging_keeps_what_was_known_first() -> None:
    assert merge([gap(7, previous=NOON)], [gap(0), gap(7)]) == [gap(0), gap(7, previous=NOON)]
    assert merge([gap(7)], [gap(7, lost=(3, 7))]) == [gap(7), gap(7, lost=(3, 7))]


def test_nothing_to_add_touches_nothing(tmp_path: Path) -> None:
    add(tmp_path, [])
    assert os.listdir(tmp_path) == []


def test_many_at_once_add_all_of_theirs(tmp_path: Path) -> None:
    def some(start: int) -> None:
        for position in range(start, 40, 4):
            add(tmp_path, [gap(position)])

    threads = [threading.Thread(target=some, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load(tmp_path) == [gap(position) for position in range(40)]


def test_the_older_half_of_too_many_is_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "MAX_GAPS", 10)
    add(tmp_path, [gap(position) for position in range(10)])
    assert len(load(tmp_path)) == 10
    add(tmp_path, [gap(10, lost=(2, 10)), gap(2, lost=(1, 2))])
    found = load(tmp_path)
    # Positions that are gone stay exact.
    assert [each.position for each in found] == [2, 4, 5, 6, 7, 8, 9, 10]
    assert [each.lost for each in found if each.lost] == [(1, 2), (2, 10)]
    assert found[1].reason == "5 gaps from position 0 on, the first of them: reason 0"


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_is_found(bit: int) -> None:
    whole = encode(ALL)
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        with pytest.raises(JournalCorrupt, match=r"^name: the file is damaged"):
            decode(bytes(damaged), "name")


def test_a_cut_file_is_found() -> None:
    whole = encode(ALL)
    for size in range(len(whole)):
        with pytest.raises(JournalCorrupt):
            decode(whole[:size], "name")
    assert decode(encode([]), "name") == []


@pytest.mark.parametrize(
    "row",
    [
        b"[-1,0,\"\"]",
        b"[0,-1,\"\"]",
        b"[0,999999999999999999,\"\"]",
        b"[0,0,\"\",-1]",
        b"[0,0,\"\",0,[4,3]]",
        b"[0,0,\"\",0,[-1,3]]",
        b"[0,0,\"\",0,[1,2,3]]",
        b"[0,0,7]",
        b"[0,0,\"\xff\"]",
        b"[" * 100_000,
        b"{}",
        b"[" + b"9" * 400 + b",0,\"\"]",
    ],
)  # fmt: skip
def test_a_hostile_file_is_corrupt(tmp_path: Path, row: bytes) -> None:
    # THREATS 98: the digest is right.
    (tmp_path / GAPS).write_bytes(hashlib.sha256(row).hexdigest().encode() + b"\n" + row)
    for attempt in (lambda: load(tmp_path), lambda: LogFolder.local(tmp_path).kept_gaps(), lambda: add(tmp_path, ALL)):
        with pytest.raises(JournalCorrupt):
            attempt()


def test_a_crash_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path, ALL[:2])

    def crash(source: object, target: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", crash)
        add(tmp_path, ALL[2:])
    assert load(tmp_path) == ALL[:2]


def test_losses_of_written_rows_are_numbered_as_they_are_recorded(tmp_path: Path) -> None:
    late = [gap(9, lost=(8, 9)), gap(3, lost=(2, 3)), gap(3, lost=(2, 3), query="q")]
    for each in late:
        add(tmp_path, [gap(5), each])
    add(tmp_path, late)
    found = {each.number: each for each in load(tmp_path) if each.number}
    assert [found[number] for number in sorted(found)] == late
    assert [each.number for each in load(tmp_path) if each.lost is None] == [0]
    add(tmp_path, [Gap(1, NOON, "found when it was trimmed", number=LATE)])
    (last,) = (each.number for each in load(tmp_path) if each.position == 1)
    assert last > max(found)
    # The file was damaged, and set aside.
    (tmp_path / GAPS).unlink()
    add(tmp_path, late[:1])
    assert load(tmp_path)[0].number > last


def test_gaps_at_one_position_stay_in_the_order_of_recording(tmp_path: Path) -> None:
    # The clock was set back between them.
    earlier, later = Gap(5, NOON, "earlier"), Gap(5, NOON - timedelta(hours=1), "later")
    add(tmp_path, [earlier])
    add(tmp_path, [later])
    assert load(tmp_path) == [earlier, later]
