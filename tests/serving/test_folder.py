"""The folder of a log behind a collector."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, all_numbers, append, numbers, write
from weirpool.errors import JournalError, JournalMissing
from weirpool.journal import Journal, JournalReader, JournalWriter
from weirpool.journal.compare import compare
from weirpool.journal.layout import LOCK, SECRET, TRIMMED
from weirpool.journal.storage import LogFolder
from weirpool.journal.verify import verify
from weirpool.serving import folder as folders
from weirpool.serving.folder import ServedFolder

from .served import serving


@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams"])
def test_it_shows_what_the_folder_shows(tmp_path: Path, protocol: str) -> None:
    folder = write(tmp_path, *[3_000] * 4, segment_bytes=200_000)
    with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
        writer.append_gap("the publisher was replaced")
        append(writer, 5)
    Journal(tmp_path).delete(SOURCE, 3_000)
    here = LogFolder.local(folder)
    with serving(tmp_path, f"{protocol}+tcp://127.0.0.1:0") as served:
        there = LogFolder.of(served.url, SOURCE)
        assert isinstance(there, ServedFolder)
        assert there.segments() == here.segments()
        assert there.identity() == here.identity() and there.mark() == here.mark()
        assert there.kept_gaps() == here.kept_gaps() and there.small(TRIMMED, 100) == here.small(TRIMMED, 100)
        for first, _ in here.segments():
            one, other = there.content(first), here.content(first)
            assert one is not None and other is not None and one.equals(other)
        assert there.content(7) is None and there.small("_gaps", 5) is None
        assert not there.is_sealed() and not there.is_awaited()
        mine, theirs = verify(there, SOURCE), verify(here, SOURCE)
        assert mine == theirs and mine.sound
        assert compare(there, here).agree
        # All that reads files reads these, too.
        assert numbers(JournalReader(served.url, SOURCE)) == all_numbers(tmp_path)


def test_a_log_that_is_not_there_is_missing(tmp_path: Path) -> None:
    write(tmp_path, 3)
    with serving(tmp_path) as served:
        absent = LogFolder.of(served.url, "absent")
        assert absent.segments() == [] and absent.identity() is None
        with pytest.raises(JournalMissing, match="there is no such log"):
            absent.require()


def test_a_collector_without_a_row_is_awaited(tmp_path: Path) -> None:
    folder = write(tmp_path, 3).with_name("source=quiet")
    folder.mkdir()
    for name in (LOCK, SECRET):
        (folder / name).touch()
    with serving(tmp_path) as served:
        assert LogFolder.of(served.url, "quiet").is_awaited()
        assert verify(LogFolder.of(served.url, "quiet"), "quiet").sound


def test_a_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MAX_FILE_BYTES", 100_000)
    write(tmp_path, 50_000)
    with serving(tmp_path) as served, pytest.raises(JournalError, match="has more than 100000 bytes"):
        LogFolder.of(served.url, SOURCE).content(0)
