from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from weirpool.archive import SealOptions
from weirpool.archive.sealing import seal
from weirpool.errors import JournalCorrupt
from weirpool.feeds.survey import end_of, survey
from weirpool.journal import ITEMS, Journal, JournalWriter
from weirpool.journal.layout import COMMITTED, log_folder

BATCH = pa.record_batch([[b"x" * 100] * 10, [None] * 10], schema=ITEMS)


def test_survey_agrees_with_the_writer(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, "s", fsync=False, budget_bytes=20_000, segment_bytes=2_000) as writer:
        for _ in range(10):
            writer.append(BATCH, "r")
        journal = Journal(tmp_path)
        for reader, position in (("slow", 35), ("fast", 90)):
            journal.trim("s", position, reader=reader, retain_bytes=0)
        writer.refresh()
        found = survey(str(tmp_path), "s", writer.position)
        assert found is not None
        assert found.readers == {"fast": 90, "slow": 35}
        assert found.used == writer.used_bytes


def test_log_without_readers_counts_as_a_whole(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, "s", fsync=False) as writer:
        writer.append(BATCH, "r")
        found = survey(str(tmp_path), "s", 10)
        assert found is not None
        assert (found.readers, found.used) == ({}, writer.used_bytes)


@pytest.mark.parametrize("stored", [False, True])
def test_sealed_rows_count_as_the_writer_counts_them(tmp_path: Path, stored: bool) -> None:
    options = SealOptions(store=str(tmp_path / "store") if stored else None)
    journal = str(tmp_path / "j")
    with JournalWriter.open(journal, "s", fsync=False, segment_bytes=2_000) as writer:
        for _ in range(10):
            writer.append(BATCH, "r")
    assert seal(journal, "s", options, force=True) is not None
    with JournalWriter.open(journal, "s", fsync=False) as writer:
        found = survey(journal, "s", writer.position)
        assert found is not None
        # Rows in a store are safe; those in the folder count until every reader has them.
        assert (found.used < 5_000) is stored
        assert found.used == writer.used_bytes


def test_log_that_does_not_exist_has_no_survey(tmp_path: Path) -> None:
    assert survey(str(tmp_path), "s", 0) is None
    assert end_of(str(tmp_path), "s") == 0


def test_end_is_that_of_the_mark(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, "s", fsync=False) as writer:
        writer.append(BATCH, "r")
        assert end_of(str(tmp_path), "s") == 10


def test_damaged_cursor_is_an_error(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, "s", fsync=False) as writer:
        writer.append(BATCH, "r")
    folder = log_folder(tmp_path, "s") / COMMITTED
    folder.mkdir()
    (folder / "reader").write_text("?")
    with pytest.raises(JournalCorrupt, match="forget"):
        survey(str(tmp_path), "s", 10)
