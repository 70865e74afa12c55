"""A journal behind a collector: what its readers show."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from tests.archive.logs import SMALL
from tests.journal.clocks import write_at, wrong_starts
from tests.journal.logs import SOURCE, append, write
from tests.journal.offers import check_offered
from weirpool import Payload, Service
from weirpool.archive import seal
from weirpool.errors import DataLost, JournalCorrupt, JournalMismatch, JournalMissing, LocalError
from weirpool.journal import Journal, JournalWriter
from weirpool.journal.ports import LogReader
from weirpool.journal.retention import trim
from weirpool.serving.messages import LogState
from weirpool.serving.remote import RemoteReader

from .served import Served, served_by, serving, until


def test_it_shows_what_the_files_show(folder: Path, server: Served) -> None:
    here, there = Journal(folder).reader(SOURCE), Journal(server.url).reader(SOURCE)
    assert (there.uuid, there.first, there.end) == (here.uuid, here.first, here.end)
    assert there.segments() == here.segments() and len(there.segments()) > 2
    assert there.bytes_between(10, 9_000) == here.bytes_between(10, 9_000)
    assert there.gaps() == here.gaps() and len(there.gaps()) == 1
    assert there.gaps(0, 5) == [] == there.damage()
    assert there.locate(60) == here.locate(60)
    assert there.split(5, 9_500, max_rows=100) == here.split(5, 9_500, max_rows=100)


@pytest.mark.parametrize("files", [0, 5])
def test_a_start_at_a_time_is_that_of_a_linear_search(tmp_path: Path, files: int) -> None:
    # THREATS 114: the collector's clock goes back, jumps ahead, and goes back again.
    moves = {10: -1800, 20: 3600, 21: -3600, 30: -90}
    write_at(tmp_path, [(moves.get(number, 10), 2) for number in range(40)])
    for _ in range(files):
        assert seal(tmp_path, SOURCE, SMALL, force=True)
    with serving(tmp_path) as served:
        there = Journal(served.url).reader(SOURCE)
        assert not list(wrong_starts(there))
        # What is told of segments without that question need not have times, and is not changed by it.
        assert [(each.first, each.end) for each in there.segments()] == [
            (each.first, each.end) for each in there.segments(timed=True)
        ]
        assert all(each.times is not None for each in there.segments(timed=True))


def test_it_lists_the_logs(folder: Path) -> None:
    with serving(folder) as served:
        assert Journal(served.url).sources() == [SOURCE]
        assert not Journal(served.url).is_awaited(SOURCE)


def test_names_that_could_not_be_those_of_logs_are_left_out(tmp_path: Path) -> None:
    # They would be printed, and would lead out of the folder of a copy.
    service = Service()

    async def states(request: Payload) -> bytes:
        names = ["good", "\x1b[2J", "../evil", "", "x" * 200]
        return msgspec.json.encode([LogState(name, "u", 0, 5) for name in names])

    service.call("weirpool.journal.list")(states)
    with served_by(service) as url:
        assert Journal(url).sources() == ["good"]


def test_it_has_all_methods_of_a_reader() -> None:
    check_offered(LogReader, RemoteReader)


def test_ranges_that_make_no_sense(server: Served) -> None:
    reader = Journal(server.url).reader(SOURCE)
    with pytest.raises(LocalError, match="no range from 3 to 2"):
        reader.read(3, 2)
    with pytest.raises(DataLost, match="earliest"):
        reader.locate(1 << 40)


def test_what_is_appended_and_trimmed_is_told(tmp_path: Path) -> None:
    folder = write(tmp_path, 10, 10, segment_bytes=1)
    with serving(tmp_path) as served:
        journal = Journal(served.url)
        reader = journal.reader(SOURCE)
        with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
            append(writer, 10)
        trim(folder, 10, retain_bytes=0)

        def told() -> bool:
            reader.refresh()
            return (reader.first, reader.end) == (10, 30)

        until(told)
        assert [extent.first for extent in reader.segments()] == [10]
        write(tmp_path / "new", 5)
        shutil.move(tmp_path / "new" / f"source={SOURCE}", tmp_path / "source=late")
        until(lambda: journal.sources() == ["late", SOURCE])


def test_a_log_that_goes_or_is_another_one(tmp_path: Path) -> None:
    folder = write(tmp_path, 10)
    with serving(tmp_path) as served:
        reader = Journal(served.url).reader(SOURCE)
        reader.refresh()
        # At once: the collector may look while a part of the files is there.
        folder.rename(tmp_path / "gone")
        with pytest.raises(JournalMissing):
            until(lambda: reader.refresh() is not None)
        write(tmp_path / "new", 10).rename(folder)
        with pytest.raises((JournalMismatch, JournalMissing)):
            until(lambda: reader.refresh() is not None)
        with pytest.raises(JournalMismatch, match=r"removed|deleted"):
            list(reader.read(0, 10))


def test_a_log_that_ends_earlier_has_lost_rows(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", 10)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with JournalWriter.open(tmp_path / "b", SOURCE, fsync=False) as writer:
        append(writer, 10)
    with serving(tmp_path / "b") as served:
        reader = Journal(served.url).reader(SOURCE)
        reader.refresh()
        shutil.rmtree(tmp_path / "b" / folder.name)
        shutil.copytree(folder, tmp_path / "b" / folder.name)
        with pytest.raises((JournalCorrupt, JournalMissing)):
            until(lambda: reader.refresh() is not None)
