from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.logs import SOURCE, append, numbers, segment, uuid, write
from weirpool import JournalCorrupt, JournalError, JournalMismatch, JournalMissing, LocalError
from weirpool.journal import JournalReader, JournalWriter, retention
from weirpool.journal.layout import COMMITTED, segment_position
from weirpool.journal.retention import (
    Committed,
    commit,
    commits,
    cursors,
    cursors_of,
    deletable,
    delete,
    drop,
    forget,
    trim,
)


def firsts(folder: Path) -> list[int]:
    return sorted(first for path in folder.iterdir() if (first := segment_position(path.name)) is not None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of ten segments of five rows."""
    return write(tmp_path, *[5] * 10, segment_bytes=1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of nine rows in one segment."""
    return write(tmp_path, 9)


def test_commits_are_kept_by_name(log: Path) -> None:
    assert commits(log) == {}
    assert commit(log, "a", 5) == 5
    assert commit(log, "b", 0) == 0
    assert commits(log) == {"a": 5, "b": 0}
    cursor = cursors(log)["a"]
    assert (cursor.position, cursor.query, cursor.log) == (5, None, uuid(log))
    assert cursor.time is not None and abs(cursor.time - datetime.now(UTC)) < timedelta(minutes=1)
    assert msgspec.json.decode((log / COMMITTED / "a").read_bytes(), type=Committed) == cursor
    assert list(cursors_of(log)) == ["a", "b"]
    assert cursors_of(log, "a") == {"a": cursor} and cursors_of(log, "absent") == {}
    assert forget(log, "a") == {"a": cursor}
    assert forget(log, "a") == {}
    assert commits(log) == {"b": 0}
    assert list(cursors_of(log)) == ["b"]


def test_a_commit_never_goes_back_unless_asked_to(log: Path) -> None:
    commit(log, "a", 5)
    assert commit(log, "a", 3) == 5
    assert commits(log) == {"a": 5}
    assert commit(log, "a", 3, rewind=True) == 3
    assert commits(log) == {"a": 3}


def test_a_name_belongs_to_the_query_that_used_it_first(folder: Path) -> None:
    # THREATS 99
    assert commit(folder, "a", 5) == 5
    assert commit(folder, "a", 3, query="q1") == 5
    for query in ("q2", None):
        with pytest.raises(JournalMismatch, match="name 'a' belongs to query q1; choose another name, or drop"):
            commit(folder, "a", 9, query=query)
        with pytest.raises(JournalMismatch, match="belongs to query q1"):
            trim(folder, 50, reader="a", query=query, retain_bytes=0)
    assert firsts(folder)[0] == 0
    assert cursors(folder)["a"].position == 5
    forget(folder, "a")
    assert commit(folder, "a", 2, query="q2") == 2


def test_the_cursor_of_another_log_is_refused(tmp_path: Path) -> None:
    # THREATS 99: the log was deleted and collected again, its cursors were kept.
    mine, other = write(tmp_path / "1", 5), write(tmp_path / "2", 5)
    commit(mine, "a", 5)
    shutil.copytree(mine / COMMITTED, other / COMMITTED)
    with pytest.raises(JournalMismatch, match=r"reader 'a' has committed rows of log .*; drop the reader"):
        commit(other, "a", 5)


def test_a_log_that_is_not_there_has_no_readers(tmp_path: Path) -> None:
    with pytest.raises(JournalMissing, match="check the path and the mount"):
        commit(tmp_path / "gone", "a", 5)
    assert not (tmp_path / "gone").exists()


def test_a_reader_in_several_places_is_as_far_as_the_slowest(folder: Path) -> None:
    commit(folder, "a", 30, query="q1")
    commit(folder, "a@q2", 10, query="q2")
    assert commits(folder) == {"a": 10}
    assert trim(folder, 40, reader="a", query="q1", retain_bytes=0) == 10
    assert trim(folder, 35, reader="a@q2", query="q2", retain_bytes=0) == 35
    forget(folder, "a")
    assert cursors(folder) == {}


def test_only_a_cursor_without_a_query_is_dropped(folder: Path) -> None:
    commit(folder, "a", 30, query="q1")
    commit(folder, "b", 30)
    for name in ("a", "b", "absent"):
        drop(folder, name)
    assert cursors(folder).keys() == {"a"}
    with pytest.raises(LocalError, match="cannot name a reader"):
        drop(folder, "../_log.json")


def test_what_a_crash_left_is_no_reader(log: Path) -> None:
    commit(log, "a", 5)
    (log / COMMITTED / ".a.123").write_bytes(b"7")
    assert commits(log) == {"a": 5}


@pytest.mark.parametrize(
    "junk", [b"junk", b"5\n", b"{}", b'{"position":-1,"query":null,"log":"u"}', b"\xff", b"[" * 100_000, b" " * 5_000]
)
def test_a_commit_that_cannot_be_read_holds_everything_up(log: Path, junk: bytes) -> None:
    commit(log, "a", 5)
    (log / COMMITTED / "a").write_bytes(junk)
    with pytest.raises(JournalCorrupt, match="is not a reader's cursor"):
        commits(log)


def test_commits_that_make_no_sense(log: Path) -> None:
    for reader in ("../a", ".a", "", "a@", "a@../b", "a@b@c"):
        with pytest.raises(LocalError, match="cannot name a reader"):
            commit(log, reader, 5)
    with pytest.raises(LocalError, match="positions start at 0"):
        commit(log, "a", -1)


def test_a_disk_that_refuses(log: Path) -> None:
    (log / COMMITTED).touch()
    with pytest.raises(JournalError, match="cannot be"):
        commit(log, "a", 5)


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


def test_what_is_deleted_is_what_was_planned(folder: Path) -> None:
    for position in (0, 4, 5, 19, 50, 10**6):
        plan = deletable(folder, position)
        before = firsts(folder)
        assert delete(folder, position, force=False) == plan
        assert [each.first for each in plan] == [first for first in before if first not in firsts(folder)]
        assert all(each.end <= position for each in plan)
    assert firsts(folder) == [45]


def test_rows_that_a_reader_needs_are_deleted_by_force_alone(folder: Path) -> None:
    commit(folder, "slow", 7)
    commit(folder, "fast", 40)
    with pytest.raises(LocalError, match="readers have not committed the rows below 30: slow at 7"):
        delete(folder, 30, force=False)
    assert firsts(folder)[0] == 0
    delete(folder, 7, force=False)
    assert firsts(folder)[0] == 5
    delete(folder, 30, force=True)
    assert firsts(folder)[0] == 30


@pytest.mark.parametrize("position", [-1, True, 5.0, "5", None])
def test_a_place_to_delete_to_is_a_position(folder: Path, position: Any) -> None:
    with pytest.raises(LocalError, match="the position is "):
        delete(folder, position, force=True)
    assert firsts(folder)[0] == 0


def test_a_log_without_segments_has_nothing_to_trim(tmp_path: Path) -> None:
    assert trim(write(tmp_path), 0) == 0


def test_a_name_has_a_length(log: Path) -> None:
    # As files, their names have a suffix while they are written.
    commit(log, "a" * 128, 5)
    commit(log, f"{'a' * 128}@{'b' * 63}", 5, query="q")
    for name in ("a" * 129, f"{'a' * 128}@{'b' * 64}"):
        with pytest.raises(LocalError, match="cannot name a reader"):
            commit(log, name, 5)
    for query in ("", "q" * 129, "a b", "\x1b[2J", "../q"):
        with pytest.raises(LocalError, match="cannot name a query"):
            commit(log, "a", 5, query=query)


def test_a_log_has_only_so_many_readers(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MAX_CURSORS", 3)
    for name in ("a", "b", "c"):
        commit(log, name, 5)
    for attempt in (lambda: commit(log, "d", 5), lambda: trim(log, 5, reader="d")):
        with pytest.raises(LocalError, match=r"has 3 readers, .*journal forget"):
            attempt()
    assert commit(log, "a", 6) == 6
    forget(log, "c")
    assert commit(log, "d", 5) == 5


@pytest.mark.parametrize("name", ["retain_rows", "retain_bytes"])
@pytest.mark.parametrize("count", [-1, True, 0.5, "5", None])
def test_a_margin_is_a_whole_number(folder: Path, name: str, count: Any) -> None:
    # Less than nothing would delete rows that no reader has committed.
    with pytest.raises(LocalError, match=f"^{name} is "):
        trim(folder, 10, **{name: count})
    assert firsts(folder)[0] == 0 and not cursors(folder)


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
