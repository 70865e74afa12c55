from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import JournalCorrupt, JournalError, LocalError
from penstock.journal import JournalReader, JournalWriter
from penstock.journal.layout import COMMITTED, log_folder, segment_position
from penstock.journal.retention import commit, commits, forget, trim
from tests.journal.logs import SOURCE, append, numbers, segment, write


def firsts(folder: Path) -> list[int]:
    return sorted(first for path in folder.iterdir() if (first := segment_position(path.name)) is not None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of ten segments of five rows."""
    return write(tmp_path, *[5] * 10, segment_bytes=1)


def test_commits_are_kept_by_name(tmp_path: Path) -> None:
    assert commits(tmp_path) == {}
    assert commit(tmp_path, "a", 5) == 5
    assert commit(tmp_path, "b", 0) == 0
    assert commits(tmp_path) == {"a": 5, "b": 0}
    assert (tmp_path / COMMITTED / "a").read_bytes() == b"5\n"
    forget(tmp_path, "a")
    forget(tmp_path, "a")
    assert commits(tmp_path) == {"b": 0}


def test_a_commit_never_goes_back(tmp_path: Path) -> None:
    commit(tmp_path, "a", 5)
    assert commit(tmp_path, "a", 3) == 5
    assert commits(tmp_path) == {"a": 5}


def test_what_a_crash_left_is_no_reader(tmp_path: Path) -> None:
    commit(tmp_path, "a", 5)
    (tmp_path / COMMITTED / ".a.123").write_bytes(b"7")
    assert commits(tmp_path) == {"a": 5}


def test_a_commit_that_cannot_be_read_holds_everything_up(tmp_path: Path) -> None:
    commit(tmp_path, "a", 5)
    (tmp_path / COMMITTED / "a").write_bytes(b"junk")
    with pytest.raises(JournalCorrupt, match="holds no position"):
        commits(tmp_path)


def test_commits_that_make_no_sense(tmp_path: Path) -> None:
    for reader in ("../a", ".a", ""):
        with pytest.raises(LocalError, match="cannot name a reader"):
            commit(tmp_path, reader, 5)
    with pytest.raises(LocalError, match="positions start at 0"):
        commit(tmp_path, "a", -1)


def test_a_disk_that_refuses(tmp_path: Path) -> None:
    (tmp_path / COMMITTED).touch()
    with pytest.raises(JournalError, match="cannot be written"):
        commit(tmp_path, "a", 5)


def test_whole_segments_go_and_the_last_one_stays(folder: Path) -> None:
    assert trim(folder, 4, retain_bytes=0) == 0
    assert trim(folder, 5, retain_bytes=0) == 5
    assert trim(folder, 19, retain_bytes=0) == 15
    assert firsts(folder) == [15, 20, 25, 30, 35, 40, 45]
    assert trim(folder, 50, retain_bytes=0) == 45
    assert trim(folder, 50, retain_bytes=0) == 45
    assert firsts(folder) == [45]


def test_a_margin_of_rows_stays(folder: Path) -> None:
    assert trim(folder, 30, retain_rows=12, retain_bytes=0) == 15


def test_what_is_recorded_counts_where_it_is_more(folder: Path) -> None:
    assert trim(folder, 30, retain_rows=30, retain_bytes=0) == 0
    assert trim(folder, 10, retain_bytes=0) == 30


def test_a_margin_of_bytes_stays(folder: Path) -> None:
    sizes = {first: segment(folder, first).stat().st_size for first in firsts(folder)}
    assert trim(folder, 30, retain_bytes=sizes[25]) == 25
    assert trim(folder, 40, retain_bytes=sizes[30] + sizes[35] + 1) == 25
    assert trim(folder, 50) == 25


def test_by_default_what_spark_may_be_rewound_over_stays(folder: Path) -> None:
    assert trim(folder, 50) == 0


def test_the_slowest_reader_rules(folder: Path) -> None:
    assert trim(folder, 10, reader="slow", retain_bytes=0) == 10
    assert trim(folder, 40, reader="fast", retain_bytes=0) == 10
    forget(folder, "slow")
    assert trim(folder, 40, reader="fast", retain_bytes=0) == 40


def test_a_log_without_segments_has_nothing_to_trim(tmp_path: Path) -> None:
    assert trim(log_folder(tmp_path, SOURCE), 0) == 0


@settings(max_examples=30)
@given(st.lists(st.integers(0, 60), max_size=6), st.integers(0, 30))
def test_whatever_is_trimmed_the_rest_is_there(
    tmp_path_factory: pytest.TempPathFactory, positions: list[int], retain_rows: int
) -> None:
    path = tmp_path_factory.mktemp("journal")
    folder = write(path, *[4] * 15, segment_bytes=1)
    for position in positions:
        left = trim(folder, position, retain_rows=retain_rows, retain_bytes=0)
        assert left <= max(0, max(positions) - retain_rows)
        reader = JournalReader(path, SOURCE)
        assert (reader.first, reader.end) == (left, 60)
        assert numbers(reader) == list(range(left, 60))
    with JournalWriter.open(path, SOURCE, fsync=False) as writer:
        assert append(writer, 1) == 61
