from __future__ import annotations

from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, all_numbers, append, numbers
from weirpool.errors import JournalCorrupt, JournalMismatch
from weirpool.journal import JournalReader, JournalWriter
from weirpool.journal.format import preamble
from weirpool.journal.layout import IDENTITY, log_folder, segment_name
from weirpool.journal.storage import LogFolder
from weirpool.replica import restore as restore_module
from weirpool.replica.bundle import Part
from weirpool.replica.restore import Piece, restore


class Group:
    """A log as its group has it: each append is a bundle."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pieces: list[Piece] = []

    def grow(self, *counts: int, segment_bytes: int = 1 << 26) -> None:
        with JournalWriter.open(self.path, SOURCE, segment_bytes=segment_bytes, fsync=False) as writer:
            for count in counts:
                before = LogFolder.local(log_folder(self.path, SOURCE)).mark()
                first = writer.position
                if count:
                    append(writer, count)
                else:
                    writer.append_gap("the publisher was away", b"at %d" % first)
                self.pieces.append(self._piece(first, writer.position, before and (before.segment, before.offset)))

    def _piece(self, first: int, end: int, before: tuple[int, int] | None) -> Piece:
        folder = LogFolder.local(log_folder(self.path, SOURCE))
        mark = folder.mark()
        assert mark is not None
        content = folder.content(mark.segment)
        start = before[1] if before and before[0] == mark.segment and before[1] else len(preamble(self.uuid))
        return Piece(first, end, memoryview(bytes(memoryview(content)[start : mark.offset])))

    @property
    def uuid(self) -> str:
        return LogFolder.local(log_folder(self.path, SOURCE)).require().uuid

    @property
    def part(self) -> Part:
        folder = log_folder(self.path, SOURCE)
        mark = LogFolder.local(folder).mark()
        assert mark is not None
        identity = (folder / IDENTITY).read_bytes()
        return Part(SOURCE, self.uuid, mark.end, mark.end, mark.head, identity=identity)


@pytest.fixture
def group(tmp_path: Path) -> Group:
    found = Group(tmp_path / "former")
    found.grow(3, 2, 4)
    return found


def state(path: Path) -> bytes | None:
    with JournalWriter.open(path, SOURCE, fsync=False) as writer:
        return writer.state


def test_a_log_is_restored_on_another_machine(group: Group, tmp_path: Path) -> None:
    here = tmp_path / "here"
    assert restore(log_folder(here, SOURCE), group.part, group.pieces) == 0
    assert all_numbers(here) == list(range(9))
    assert JournalReader(here, SOURCE).uuid == group.uuid
    assert state(here) == b"at 9"
    with JournalWriter.open(here, SOURCE, fsync=False) as writer:
        append(writer, 3)
    assert all_numbers(here) == list(range(12))


def test_rows_in_sealed_segments_are_left_out(group: Group, tmp_path: Path) -> None:
    here = tmp_path / "here"
    assert restore(log_folder(here, SOURCE), group.part, group.pieces[2:]) == 5
    reader = JournalReader(here, SOURCE)
    assert (reader.first, reader.end) == (5, 9)
    assert numbers(reader) == [5, 6, 7, 8]


def test_a_log_may_be_sealed_to_its_end(group: Group, tmp_path: Path) -> None:
    here = tmp_path / "here"
    assert restore(log_folder(here, SOURCE), group.part, []) == 9
    with JournalWriter.open(here, SOURCE, fsync=False) as writer:
        assert writer.position == 9
        append(writer, 2)
    assert numbers(JournalReader(here, SOURCE)) == [9, 10]


@pytest.mark.parametrize("segment_bytes", [1, 1 << 26])
def test_a_log_is_continued_on_the_same_machine(group: Group, tmp_path: Path, segment_bytes: int) -> None:
    here = tmp_path / "here"
    restore(log_folder(here, SOURCE), group.part, group.pieces)
    reader = JournalReader(here, SOURCE)
    for counts in ((2,), (1, 1, 1), (0,), (0, 5)):
        group.grow(*counts, segment_bytes=segment_bytes)
        # What was written and not published must not be taken for a part of the log.
        (log_folder(here, SOURCE) / segment_name(99)).write_bytes(b"a segment that was never published")
        assert restore(log_folder(here, SOURCE), group.part, group.pieces[3:]) == 0
        reader.refresh()
        assert numbers(reader) == all_numbers(group.path)
    assert len(JournalReader(here, SOURCE).gaps()) == 2
    assert restore(log_folder(here, SOURCE), group.part, group.pieces) == 0


def test_bundles_may_begin_within_the_log(group: Group, tmp_path: Path) -> None:
    here = tmp_path / "here"
    restore(log_folder(here, SOURCE), group.part, group.pieces)
    group.grow(2, 2)
    assert restore(log_folder(here, SOURCE), group.part, group.pieces[1:]) == 0
    assert all_numbers(here) == list(range(13))


def test_a_log_that_fell_behind_begins_again(group: Group, tmp_path: Path) -> None:
    here = tmp_path / "here"
    restore(log_folder(here, SOURCE), group.part, group.pieces)
    reader = JournalReader(here, SOURCE)
    group.grow(2, 2)
    # The rows between are sealed meanwhile.
    assert restore(log_folder(here, SOURCE), group.part, group.pieces[4:]) == 11
    reader.refresh()
    assert (reader.first, reader.end) == (11, 13)
    assert numbers(reader) == [11, 12]


def test_after_a_restart_of_the_machine_nothing_here_counts(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    restore(log_folder(here, SOURCE), group.part, group.pieces)
    (segment,) = log_folder(here, SOURCE).glob("*.arrows")
    segment.write_bytes(bytes(segment.stat().st_size))
    boot = tmp_path / "boot"
    boot.write_text("another boot")
    monkeypatch.setattr(restore_module, "_BOOT_ID", boot)
    restore(log_folder(here, SOURCE), group.part, group.pieces)
    assert all_numbers(here) == list(range(9))


def test_other_logs_are_refused(group: Group, tmp_path: Path) -> None:
    other = Group(tmp_path / "other")
    other.grow(3)
    with pytest.raises(JournalMismatch, match="move it away"):
        restore(log_folder(other.path, SOURCE), group.part, group.pieces)
    here = tmp_path / "here"
    restore(log_folder(here, SOURCE), group.part, group.pieces)
    with JournalWriter.open(here, SOURCE, fsync=False) as writer:
        append(writer, 3)
    with pytest.raises(JournalMismatch, match="only up to 9"):
        restore(log_folder(here, SOURCE), group.part, group.pieces)


def test_bundles_that_do_not_fit_are_refused(group: Group, tmp_path: Path) -> None:
    here = log_folder(tmp_path / "here", SOURCE)
    first, second, third = group.pieces
    for pieces in (
        [first, third],
        [second, first, third],
        [first, second],
        [first, second, Piece(5, 9, third.batches[:-8])],
        [first, Piece(3, 5, memoryview(bytes(len(second.batches)))), third],
    ):
        with pytest.raises(JournalCorrupt, match="the bundles of source 's'"):
            restore(here, group.part, pieces)
    assert not list(here.glob("*.arrows"))
