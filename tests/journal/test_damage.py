"""Whatever happens to a log, the damage is found by everybody, and reaches no further than what was touched."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.laboratory import experiment
from tests.journal.logs import SOURCE, all_positions, append, entries, items, numbers, segment, write
from weirpool import JournalCorrupt
from weirpool.journal import Journal, JournalReader, JournalWriter
from weirpool.journal.damage import Damage
from weirpool.journal.format import Entry
from weirpool.journal.layout import log_folder

COUNTS = (3, 1, 4, 2, 5, 3, 2, 4, 1, 3)
SEGMENT_BYTES = 3_600
SEEDS = 160
"""Experiments of the laboratory."""


@dataclass(frozen=True, repr=False)
class Log:
    """A log that is sound, and another one that is just like it."""

    path: Path
    folder: Path
    batches: list[tuple[int, Entry]]
    other: Path

    @property
    def end(self) -> int:
        return self.batches[-1][1].end

    def of(self, first: int) -> list[Entry]:
        """Return the batches of a segment."""
        return [entry for each, entry in self.batches if each == first]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    path = tmp_path_factory.mktemp("sound")
    for name in ("log", "other"):
        with JournalWriter.open(path / name, SOURCE, segment_bytes=SEGMENT_BYTES, fsync=False) as writer:
            append(writer, *COUNTS[:4])
            writer.append_gap("lost")
            append(writer, *COUNTS[4:])
            writer.append(items(0, 0), "numbers", b"done")
    folder = log_folder(path / "log", SOURCE)
    log = Log(path / "log", folder, entries(folder), log_folder(path / "other", SOURCE))
    assert len({first for first, _ in log.batches}) >= 4
    return log


def entry_bytes(folder: Path, first: int, entry: Entry) -> bytes:
    return segment(folder, first).read_bytes()[entry.offset : entry.end_offset]


def splice(folder: Path, first: int, start: int, end: int, new: bytes) -> None:
    """Replace some bytes of a segment."""
    old = segment(folder, first).read_bytes()
    segment(folder, first).write_bytes(old[:start] + new + old[end:])


def flip(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    first, entry = data.draw(st.sampled_from(log.batches))
    offset = data.draw(st.integers(entry.offset, entry.end_offset - 1))
    byte = segment(folder, first).read_bytes()[offset]
    splice(folder, first, offset, offset + 1, bytes([byte ^ 1 << data.draw(st.integers(0, 7))]))
    return [entry]


def cut(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    first = data.draw(st.sampled_from(sorted({first for first, _ in log.batches})))
    size = data.draw(st.integers(0, log.of(first)[-1].end_offset - 1))
    splice(folder, first, size, log.of(first)[-1].end_offset, b"")
    return [entry for entry in log.of(first) if entry.end_offset > size]


def remove_bytes(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    first, entry = data.draw(st.sampled_from(log.batches))
    start = data.draw(st.integers(entry.offset, entry.end_offset - 1))
    splice(folder, first, start, data.draw(st.integers(start + 1, entry.end_offset)), b"")
    return [entry]


def overwrite(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    """Write one batch where another one is, as a disk does that is wrong about the place."""
    first, entry = data.draw(st.sampled_from(log.batches))
    source, wrong = data.draw(st.sampled_from([each for each in log.batches if each[1] != entry]))
    new = entry_bytes(folder, source, wrong)
    splice(folder, first, entry.offset, entry.offset + len(new), new)
    return [each for each in log.of(first) if entry.offset < each.end_offset and each.offset < entry.offset + len(new)]


def replace(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    """Put one batch in the place of another one, whatever its length."""
    first, entry = data.draw(st.sampled_from(log.batches))
    source, wrong = data.draw(st.sampled_from([each for each in log.batches if each[1] != entry]))
    splice(folder, first, entry.offset, entry.end_offset, entry_bytes(folder, source, wrong))
    return [entry]


def replace_from_another_log(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    first, entry = data.draw(st.sampled_from(log.batches))
    splice(folder, first, entry.offset, entry.end_offset, entry_bytes(log.other, first, entry))
    return [entry]


def swap(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    one, two = data.draw(st.permutations(range(len(log.batches))))[:2]
    (first, early), (second, late) = log.batches[min(one, two)], log.batches[max(one, two)]
    before, after = entry_bytes(folder, first, early), entry_bytes(folder, second, late)
    splice(folder, second, late.offset, late.end_offset, before)
    splice(folder, first, early.offset, early.end_offset, after)
    # In one file, and with lengths that differ, what is between them has lost its order, too.
    same = first == second
    return [early, late, *(each for each in log.of(first) if same and early.offset < each.offset < late.offset)]


def duplicate(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    """Write a batch once more behind itself; what comes behind moves. Behind the last one it is a torn tail."""
    first, entry = data.draw(st.sampled_from(log.batches[:-1]))
    splice(folder, first, entry.end_offset, entry.end_offset, entry_bytes(folder, first, entry))
    return [entry, *[each for each in log.of(first) if each.offset == entry.end_offset]]


def remove(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    first, entry = data.draw(st.sampled_from(log.batches))
    splice(folder, first, entry.offset, entry.end_offset, b"")
    return [entry]


def swap_segments(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    one, two = data.draw(st.permutations(sorted({first for first, _ in log.batches})))[:2]
    before, after = segment(folder, one).read_bytes(), segment(folder, two).read_bytes()
    segment(folder, one).write_bytes(after)
    segment(folder, two).write_bytes(before)
    return [*log.of(one), *log.of(two)]


def repeat_a_segment(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    one, two = data.draw(st.permutations(sorted({first for first, _ in log.batches})))[:2]
    shutil.copy(segment(folder, one), segment(folder, two))
    return log.of(two)


def replace_a_segment(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    first = data.draw(st.sampled_from(sorted({first for first, _ in log.batches})))
    shutil.copy(segment(log.other, first), segment(folder, first))
    return log.of(first)


def remove_a_segment(log: Log, folder: Path, data: st.DataObject) -> list[Entry]:
    # Without its first segment a log is trimmed.
    first = data.draw(st.sampled_from(sorted({first for first, _ in log.batches})[1:]))
    segment(folder, first).unlink()
    return log.of(first)


FAULTS = [
    flip, cut, remove_bytes, overwrite, replace, replace_from_another_log, swap, duplicate, remove, swap_segments,
    repeat_a_segment, replace_a_segment, remove_a_segment,
]  # fmt: skip


def unreadable(path: Path, log: Log) -> Iterator[int]:
    """Yield the positions whose rows cannot be read; the others have just the rows that were written."""
    for _, entry in log.batches:
        if entry.note.rows:
            try:
                rows = numbers(JournalReader(path, SOURCE), entry.position, entry.end)
            except JournalCorrupt as error:
                assert re.search(r"(positions \d+ to \d+ are|a record before position \d+ is) damaged", str(error))
                yield from range(entry.position, entry.end)
            else:
                assert rows == list(range(entry.position, entry.end))


def whole_log_is_refused(path: Path) -> None:
    with pytest.raises(JournalCorrupt, match=r"(positions \d+ to \d+ are|a record before position \d+ is) damaged"):
        list(JournalReader(path, SOURCE).read(0, JournalReader(path, SOURCE).end))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_damage_is_found_and_reaches_no_further(
    tmp_path_factory: pytest.TempPathFactory, log: Log, fault: object, data: st.DataObject
) -> None:
    # THREATS 97
    path = tmp_path_factory.mktemp("damaged")
    folder = log_folder(path, SOURCE)
    shutil.copytree(log.folder, folder)
    touched = fault(log, folder, data)  # type: ignore[operator]
    allowed = {position for entry in touched for position in range(entry.position, entry.end)}
    # Of a record without rows its neighbors tell.
    for entry in touched:
        if not entry.note.rows:
            near = [each for _, each in log.batches if entry.position in (each.position, each.end)]
            allowed |= {position for each in near for position in range(each.position, each.end)}

    (report,) = Journal(path).verify().values()
    assert not report.sound
    assert (report.first, report.end) == (0, log.end)
    reported = {position for first, end in report.damage for position in range(first, log.end if end is None else end)}
    assert reported <= allowed
    assert report.rows == log.end - len(reported)
    whole_log_is_refused(path)
    assert reported <= set(unreadable(path, log)) <= allowed

    try:
        JournalWriter.open(path, SOURCE, fsync=False).close()
    except JournalCorrupt as error:
        first, end = report.damage[0]
        what = (
            f"positions {first} to {end - 1} are"
            if end is not None and end > first
            else f"a record before position {first} is"
        )
        assert f"{what} damaged" in str(error)
    else:
        # Bodies are their readers' matter.
        assert all("body" in problem for problem in report.problems)

    before = {each: segment(folder, each).read_bytes() for each in {first for first, _ in log.batches}
              if segment(folder, each).exists()}  # fmt: skip
    assert Journal(path).repair(SOURCE).refused
    if Journal(path).repair(SOURCE).loses:
        assert Journal(path).repair(SOURCE, apply=True).refused
    assert not Journal(path).repair(SOURCE, apply=True, accept_loss=True).refused
    # What stood under another name only is there again.
    kept = all_positions(path)
    assert {*range(log.end)} - reported <= {*kept}
    assert kept == sorted({*kept})
    assert numbers_of(path) == kept
    reported -= {*kept}
    with JournalWriter.open(path, SOURCE, fsync=False) as writer:
        assert writer.append(items(log.end, 2), "numbers") == log.end + 2
    assert all_positions(path) == [*kept, log.end, log.end + 1]
    (report,) = Journal(path).verify().values()
    assert (report.problems, report.rows) == ([], len(kept) + 2)
    assert {position for gap in report.gaps if gap.lost for position in range(*gap.lost)} == reported
    for content in before.values():
        copies = [each.read_bytes() for each in folder.glob("*.arrows*")]
        assert any(copy.startswith(content) for copy in copies)


def numbers_of(path: Path) -> list[int]:
    reader = JournalReader(path, SOURCE)
    return [int(data) for batch in reader.read(reader.first, reader.end) for data in batch["data"].to_pylist()]


def test_without_its_first_segment_a_log_is_damaged(tmp_path: Path) -> None:
    # THREATS 97: nobody has trimmed it.
    folder = write(tmp_path, 3, 3, 3, segment_bytes=1)
    segment(folder).unlink()
    reader = JournalReader(tmp_path, SOURCE)
    assert numbers(reader, 3, 9) == list(range(3, 9))
    with pytest.raises(JournalCorrupt, match=r"positions 0 to 2 are damaged \(the file is missing"):
        numbers(reader, 0, 9)
    assert Journal(tmp_path).verify()[SOURCE].damage == [(0, 3)]
    with pytest.raises(JournalCorrupt, match="positions 0 to 2"):
        JournalWriter.open(tmp_path, SOURCE)
    with JournalWriter.open(tmp_path, SOURCE, accept_loss=True) as writer:
        assert writer.position == 9
    assert numbers(JournalReader(tmp_path, SOURCE), 3, 9) == list(range(3, 9))
    assert JournalReader(tmp_path, SOURCE).damage() == []


@pytest.mark.parametrize("group", range(8))
def test_damage_to_any_file_is_told_and_one_repair_is_enough(tmp_path: Path, group: int) -> None:
    # THREATS 97
    found: list[str] = []
    for seed in range(group, SEEDS, 8):
        found += experiment(tmp_path / f"{seed}", seed)
    assert found == []


def test_errors_name_the_rows() -> None:
    assert "positions 3 to 9 are damaged (why)" in str(Damage(3, 10, "why").error("file"))
    assert "positions from 3 on are damaged (why)" in str(Damage(3, None, "why").error("file"))
    assert "a record before position 3 is damaged (why)" in str(Damage(3, 3, "why").error("file"))
