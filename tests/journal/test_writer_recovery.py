"""The writer opens what a crash left: torn tails, lost marks, segments half made."""

from __future__ import annotations

import logging
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, all_numbers, all_positions, append, entries, flip, segment, set_mark, write
from weirpool import JournalCorrupt
from weirpool.journal import Journal, JournalReader, JournalWriter

ROOT = Path(__file__).parents[2]


def test_a_torn_tail_is_cut(tmp_path: Path) -> None:
    # THREATS 80
    folder = write(tmp_path / "whole", 3, 3)
    before = set_mark(folder, 3).offset
    content = segment(folder).read_bytes()
    # Every byte is tried in test_recovery.py.
    for length in range(before, len(content), 29):
        place = tmp_path / "torn"
        shutil.copytree(tmp_path / "whole", place)
        segment(place / "source=s").write_bytes(content[:length])
        with JournalWriter.open(place, SOURCE, fsync=False) as writer:
            assert (writer.position, writer.state) == (3, b"at 3")
            append(writer, 2)
        assert all_numbers(place) == list(range(5))
        shutil.rmtree(place)


@pytest.mark.parametrize("counts", [(3,), (3, 2), (3, 2, 4)])
def test_log_cut_below_its_mark_opens_when_loss_is_accepted(
    tmp_path: Path, counts: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    # THREATS 97: no position that was lost is ever given to other rows.
    folder = write(tmp_path / "whole", *counts)
    ends = [(entry.end_offset, entry.end) for _, entry in entries(folder)]
    content, end = segment(folder).read_bytes(), sum(counts)
    for size in range(0, len(content), 41):
        kept = max((rows for offset, rows in ends if offset <= size), default=0)
        place = tmp_path / "cut"
        shutil.copytree(tmp_path / "whole", place)
        damaged = segment(place / "source=s")
        damaged.write_bytes(content[:size])
        with pytest.raises(JournalCorrupt, match=f"positions {kept} to {end - 1} are damaged"):
            JournalWriter.open(place, SOURCE, fsync=False)
        assert damaged.read_bytes() == content[:size]
        for accept in (True, False):
            with JournalWriter.open(place, SOURCE, fsync=False, accept_loss=accept) as writer:
                assert writer.position == end
                assert writer.state == (b"at %d" % kept if kept else None)
        assert all_positions(place) == list(range(kept))
        with JournalWriter.open(place, SOURCE, fsync=False) as writer:
            append(writer, 2)
        assert all_positions(place) == [*range(kept), end, end + 1]
        assert damaged.read_bytes() == content[:size]
        (gap,) = JournalReader(place, SOURCE).gaps()
        assert (gap.position, gap.lost) == (end, (kept, end))
        assert (gap.previous is None) == (kept == 0)
        (report,) = Journal(place).verify().values()
        assert (report.sound, report.rows, report.gaps) == (True, kept + 2, [gap])
        shutil.rmtree(place)
    assert f"a gap at position {end}: accepted as lost: 00000000000000000000.arrows" in caplog.text


def test_a_mark_that_is_damaged_can_be_accepted(tmp_path: Path) -> None:
    # THREATS 97
    folder = write(tmp_path, 3)
    Journal(tmp_path).trim(SOURCE, 3)
    (folder / "_durable").write_bytes(b"junk")
    with pytest.raises(JournalCorrupt, match="neither of its two slots has a valid mark"):
        JournalWriter.open(tmp_path, SOURCE)
    with JournalWriter.open(tmp_path, SOURCE, accept_loss=True) as writer:
        assert append(writer, 2) == 5
    assert (folder / "_durable.damaged").read_bytes() == b"junk"
    (gap,) = JournalReader(tmp_path, SOURCE).gaps()
    assert (gap.position, gap.lost) == (3, (3, 3))
    assert all_numbers(tmp_path) == list(range(5))


def test_committed_positions_are_not_reused(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    write(tmp_path, 3)
    Journal(tmp_path).trim(SOURCE, 5)
    for path, data in before.items():
        path.write_bytes(data)
    with pytest.raises(JournalCorrupt, match="committed position 5, but the log ends at 3"):
        JournalWriter.open(tmp_path, SOURCE)
    with JournalWriter.open(tmp_path, SOURCE, accept_loss=True) as writer:
        assert append(writer, 2) == 7
    assert all_positions(tmp_path) == [0, 1, 2, 5, 6]
    assert [gap.lost for gap in JournalReader(tmp_path, SOURCE).gaps()] == [(3, 5)]


def test_a_tail_that_was_never_durable_is_cut_silently(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write(tmp_path, 3)
    with open(segment(folder), "ab") as file:
        file.write(b"\xff\xff\xff\xff half a batch")
    with caplog.at_level(logging.INFO), JournalWriter.open(tmp_path, SOURCE) as writer:
        append(writer, 2)
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "cut 17 bytes of an unfinished batch at 3" in caplog.text
    assert all_numbers(tmp_path) == list(range(5))


def test_a_segment_that_was_being_made_goes(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    leftover = folder / (segment(folder, 3).name + ".tmp")
    leftover.write_bytes(b"half")
    append(JournalWriter.open(tmp_path, SOURCE), 1)
    assert not leftover.exists()
    assert all_numbers(tmp_path) == list(range(4))


def test_a_log_whose_end_is_damaged_is_not_written_to(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    flip(segment(folder), 600)
    for _ in range(2):
        # The lock is given back each time.
        with pytest.raises(JournalCorrupt, match="positions 0 to 2 are damaged"):
            JournalWriter.open(tmp_path, SOURCE)


PROGRAM = """
import sys
from weirpool.journal import JournalWriter
from tests.journal.logs import append
with JournalWriter.open(sys.argv[1], "s", segment_bytes=50_000) as writer:
    assert writer.state == (b"at %d" % writer.position if writer.position else None)
    while True:
        print(append(writer, 1 + writer.position % 300), flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_leaves_all_that_append_returned_for(tmp_path: Path) -> None:
    chance = random.Random(80)
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        with process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.randint(1, 60))]
            process.kill()
            lines += process.stdout
        # The last line may be cut in two.
        said = max(int(line) for line in lines if line.endswith("\n"))
        found = all_numbers(tmp_path)
        assert found == list(range(len(found)))
        assert len(found) >= said
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        assert writer.state == b"at %d" % writer.position
        assert append(writer, 1) > said
