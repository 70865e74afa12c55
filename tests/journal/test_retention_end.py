"""No reader is ever beyond the end of its log, whoever sets its position (THREATS 113)."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest

from tests.archive.logs import seal_all
from tests.journal.logs import SOURCE, append, segment, uuid, write
from weirpool import JournalCorrupt, JournalMissing, LocalError
from weirpool.journal import Journal, JournalReader, JournalWriter
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.layout import COMMITTED, DURABLE, TRIMMED
from weirpool.journal.retention import Committed, beyond, commits, cursors, durable_end, last_commit, reset

ROWS = 30
BEYOND = [1, 10**6, 2**62, 2**63, 2**64, 10**4000, 10**5000]
NUMBERS: list[Any] = [-1, True, 5.0, 0.5, float("nan"), "5", b"5", None, [5]]


def empty(path: Path) -> Path:
    return write(path)


def filled(path: Path) -> Path:
    return write(path, *[10] * 3, segment_bytes=1)


def trimmed(path: Path) -> Path:
    folder = filled(path)
    Journal(path).trim(SOURCE, 20, reader="first", retain_bytes=0)
    return folder


def sealed(path: Path) -> Path:
    folder = filled(path)
    seal_all(path)
    return folder


def without_mark(path: Path) -> Path:
    folder = filled(path)
    (folder / DURABLE).unlink()
    return folder


LOGS = [empty, filled, trimmed, sealed, without_mark]


def seek(path: Path, position: Any) -> int:
    return Journal(path).seek(SOURCE, "a", position)


def trim(path: Path, position: Any) -> int:
    return Journal(path).trim(SOURCE, position, reader="a", retain_bytes=0)


def query_commits(path: Path, position: Any) -> int:
    return FolderCoordinator(str(path)).commit(SOURCE, "a", position, query="q")


def query_trims(path: Path, position: Any) -> int:
    return FolderCoordinator(str(path)).trim(SOURCE, "a@q", position, query="q", retain_bytes=0)


WAYS: list[Callable[[Path, Any], int]] = [seek, trim, query_commits, query_trims]


def files(folder: Path) -> dict[str, bytes]:
    """Return all files of a journal."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("log", LOGS)
def test_a_position_beyond_the_end_is_refused(
    tmp_path: Path, log: Callable[[Path], Path], way: Callable[[Path, Any], int]
) -> None:
    folder = log(tmp_path)
    end = durable_end(folder, uuid(folder))
    assert end == (0 if log is empty else ROWS)
    before = files(tmp_path)
    for more in BEYOND:
        with pytest.raises(LocalError, match=f"cannot be at position .*the log ends at {end};") as refused:
            way(tmp_path, end + more)
        if more < 10**100:
            assert str(end + more) in str(refused.value)
    assert files(tmp_path) == before
    way(tmp_path, end)
    assert {cursor.position for name, cursor in cursors(folder).items() if name != "first"} == {end}
    with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
        assert append(writer, 5) == end + 5


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("position", NUMBERS, ids=str)
def test_a_position_is_a_whole_number(tmp_path: Path, way: Callable[[Path, Any], int], position: Any) -> None:
    folder = filled(tmp_path)
    with pytest.raises(LocalError, match=r"it must be a whole number"):
        way(tmp_path, position)
    assert not cursors(folder)


def test_numbers_of_other_libraries_are_whole_numbers_too(tmp_path: Path) -> None:
    filled(tmp_path)
    assert seek(tmp_path, numpy.int64(7)) == 7
    assert type(Journal(tmp_path).seek(SOURCE, "a", numpy.uint8(8))) is int


def test_rows_after_the_mark_are_not_committed(tmp_path: Path) -> None:
    # Readers do not see them: they may still fail to become durable.
    folder = write(tmp_path, 10)
    mark = (folder / DURABLE).read_bytes()
    write(tmp_path, 10)
    (folder / DURABLE).write_bytes(mark)
    with pytest.raises(LocalError, match="position 11, because the log ends at 10;"):
        seek(tmp_path, 11)


def test_what_was_compared_once_is_not_compared_with_an_older_mark(tmp_path: Path) -> None:
    # After a power cut, until the log is opened for writing.
    folder = write(tmp_path, 10)
    mark = (folder / DURABLE).read_bytes()
    write(tmp_path, 10)
    query_commits(tmp_path, 18)
    (folder / DURABLE).write_bytes(mark)
    assert query_commits(tmp_path, 18) == 18
    assert FolderCoordinator(str(tmp_path)).trim(SOURCE, "a", 15, query="q", retain_bytes=0) == 0
    assert query_commits(tmp_path, 12) == 12
    assert Journal(tmp_path).verify()[SOURCE].sound
    assert JournalWriter.open(tmp_path, SOURCE, fsync=False).position == 20


def test_a_log_of_unknown_end_takes_no_positions(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    (folder / DURABLE).write_bytes(b"junk")
    for way in WAYS:
        with pytest.raises(JournalCorrupt, match="the end of the log is unknown"):
            way(tmp_path, 5)


def test_a_folder_without_a_log_takes_no_positions(tmp_path: Path) -> None:
    for way in WAYS:
        with pytest.raises(JournalMissing, match="there is no log here"):
            way(tmp_path, 5)
    assert not list(tmp_path.iterdir())


def set_unseen(folder: Path, position: int, query: str | None = None) -> Path:
    """Set a reader without a look at the end of the log, as early versions did."""
    path = folder / COMMITTED / "export"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.encode({"position": position, "query": query, "log": uuid(folder)}))
    return path


@pytest.mark.parametrize("position", [ROWS + 1, 10**6, 2**62, 2**63])
@pytest.mark.parametrize("log", LOGS)
def test_a_position_that_nobody_compared_stops_no_log_for_good(
    tmp_path: Path, log: Callable[[Path], Path], position: int
) -> None:
    folder = log(tmp_path / "a b")
    end = durable_end(folder, uuid(folder))
    path = set_unseen(folder, position)
    for accept_loss in (False, True):
        with pytest.raises(JournalCorrupt) as refused:
            JournalWriter.open(tmp_path / "a b", SOURCE, accept_loss=accept_loss, fsync=False)
        assert str(refused.value).startswith(
            f"{path}: this reader is at position {position}, and the log ends at {end};"
        )
        assert f"`weirpool journal seek '{tmp_path}/a b' export --to latest`" in str(refused.value)
    journal = Journal(tmp_path / "a b")
    (problem,) = journal.verify()[SOURCE].problems
    assert problem.startswith(f"{path}: this reader is at position {position}, but the log ends at {end};")
    (lag,) = (lag for lag in journal.lags(SOURCE) if lag.reader == "export")
    assert (lag.position, lag.end, lag.rows) == (position, end, 0)

    plan = journal.repair(SOURCE)
    assert plan.actions == [
        f"set the reader export back from position {position} to {end}, the end of the log: when it was set, nobody "
        "looked where that is"
    ]
    assert (plan.lost, plan.loses) == ([], False)
    assert commits(folder)["export"] == position
    assert not journal.repair(SOURCE, apply=True).refused
    assert commits(folder)["export"] == end
    with JournalWriter.open(tmp_path / "a b", SOURCE, fsync=False) as writer:
        assert append(writer, 5) == end + 5
    assert journal.verify()[SOURCE].sound


@pytest.mark.parametrize("remedy", ["seek", "forget"])
def test_an_operator_can_help_a_log_that_does_not_open(tmp_path: Path, remedy: str) -> None:
    folder = filled(tmp_path)
    set_unseen(folder, 10**6)
    journal = Journal(tmp_path)
    assert journal.seek(SOURCE, "export", ROWS) == ROWS if remedy == "seek" else journal.forget(SOURCE, "export")
    assert JournalWriter.open(tmp_path, SOURCE, fsync=False).position == ROWS


def test_a_query_keeps_its_name_when_it_is_set_back(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    set_unseen(folder, 10**6, query="q")
    Journal(tmp_path).repair(SOURCE, apply=True)
    assert (cursors(folder)["export"].position, cursors(folder)["export"].query) == (ROWS, "q")


def test_a_position_that_nobody_compared_is_compared_when_it_is_set_again(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    set_unseen(folder, 10)
    assert last_commit(folder, uuid(folder)) == (0, "")
    Journal(tmp_path).seek(SOURCE, "export", 10)
    assert last_commit(folder, uuid(folder)) == (10, "export")


def lose(folder: Path, position: int) -> None:
    """Take the end of a log away, with its mark: what is left is a sound log, and shorter. The readers stay."""
    for each in folder.glob("*.arrows"):
        if each.name >= segment(folder, position).name:
            each.unlink()
    (folder / DURABLE).unlink()


@pytest.mark.parametrize("way", WAYS)
def test_a_real_loss_below_a_reader_is_noticed(tmp_path: Path, way: Callable[[Path, Any], int]) -> None:
    folder = filled(tmp_path)
    Journal(tmp_path).seek(SOURCE, "holds", 0)
    way(tmp_path, 25)
    (name,) = cursors(folder).keys() - {"holds"}
    lose(folder, 20)
    assert durable_end(folder, uuid(folder)) == 20
    with pytest.raises(JournalCorrupt, match=f"positions 20 to 24 are damaged .*{COMMITTED}/{name}: this reader has"):
        JournalWriter.open(tmp_path, SOURCE, fsync=False)
    assert not Journal(tmp_path).verify()[SOURCE].sound
    plan = Journal(tmp_path).repair(SOURCE)
    assert (plan.lost, plan.loses) == ([(20, 25)], True)
    with JournalWriter.open(tmp_path, SOURCE, accept_loss=True, fsync=False) as writer:
        # The positions that the reader has seen name the same rows for ever: others get later ones.
        assert writer.position == 25


def test_a_reader_beyond_the_end_is_found_by_name(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    seek(tmp_path, 20)
    reset(folder, "b", 31)
    assert {name: cursor.position for name, cursor in beyond(folder, uuid(folder), ROWS).items()} == {"b": 31}
    assert beyond(folder, uuid(folder), 19).keys() == {"a", "b"}
    assert not beyond(folder, "another", 0)


def test_a_repair_sets_a_cursor_that_cannot_be_read(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    (folder / COMMITTED).mkdir()
    (folder / COMMITTED / "a").write_bytes(b"junk")
    reset(folder, "a", 5)
    assert isinstance(cursors(folder)["a"], Committed) and commits(folder) == {"a": 5}


PROGRAM = """
import os, random, sys, time
from weirpool import LocalError
from weirpool.journal import Journal, JournalReader
from weirpool.journal.coordinator import FolderCoordinator

# A process that gives way here gives the others the time to come between.
os.fsync = lambda fd: time.sleep(0)
path, me, seed = sys.argv[1:]
rng = random.Random(int(seed))
journal, desk = Journal(path), FolderCoordinator(path)
highest = refused = 0
for turn in range(120):
    known = desk.cursors("s").get("shared")
    end = JournalReader(path, "s").end
    position = min(end, (known.position if known else 0) + rng.randrange(1, 10)) + rng.choice([0, 0, 0, 10**5])
    try:
        if turn % 3:
            journal.trim("s", position, reader="shared", retain_bytes=0)
            highest = max(highest, position)
        else:
            desk.trim("s", me, position, query="q", retain_bytes=0)
    except LocalError:
        assert position > end, (position, end)
        refused += 1
        continue
    assert position <= JournalReader(path, "s").end
    assert not highest or desk.cursors("s")["shared"].position >= highest, "a commit was taken back"
assert refused
print(highest)
"""


@pytest.mark.slow
def test_processes_that_commit_trim_and_append_at_once_agree(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=8_000, fsync=False) as writer:
        append(writer, 10)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(tmp_path), f"reader{number}", str(number)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(3)
        ]
        rng = random.Random(0)
        while any(process.poll() is None for process in processes):
            if writer.position < 5_000:
                append(writer, rng.randrange(1, 10))
        said = [process.communicate() for process in processes]
        end = writer.position
    assert [process.returncode for process in processes] == [0, 0, 0], said
    folder = tmp_path / f"source={SOURCE}"
    # No commit takes another one's back, and nobody is beyond the end.
    assert commits(folder)["shared"] == max(int(out) for out, _ in said)
    assert max(commits(folder).values()) <= end
    first = JournalReader(tmp_path, SOURCE).first
    assert first <= min(commits(folder).values())
    assert (folder / TRIMMED).exists() == (first > 0)
    assert JournalWriter.open(tmp_path, SOURCE, fsync=False).position == end
