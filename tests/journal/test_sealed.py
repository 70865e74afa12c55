from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from weirpool.errors import JournalCorrupt, JournalMismatch
from weirpool.journal.layout import SEALED, STORE, Extent
from weirpool.journal.sealed import (
    SealedState,
    load_sealed,
    raise_floor,
    record_sealed,
    record_store,
    safe_position,
    sealed_extents,
    store_uri,
    write_sealed,
)  # fmt: skip

STATE = SealedState("log", 10, 50, 4_000, stored=False, floor=10)
STORED = SealedState("log", 10, 50, 4_000, stored=True, floor=10)


def test_a_log_that_is_not_sealed_has_no_state(tmp_path: Path) -> None:
    assert load_sealed(tmp_path) is None
    assert safe_position(tmp_path) == 0 and sealed_extents(tmp_path, 50) == []


def test_the_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    for state in (STATE, STORED):
        write_sealed(tmp_path, state)
        assert load_sealed(tmp_path) == load_sealed(tmp_path, "log") == state


def test_rows_in_a_store_are_safe_and_others_count(tmp_path: Path) -> None:
    write_sealed(tmp_path, STATE)
    assert safe_position(tmp_path) == 0
    assert sealed_extents(tmp_path, 50) == [Extent(10, 50, 4_000)]
    assert sealed_extents(tmp_path, 30) == [Extent(10, 30, 2_000)]
    assert sealed_extents(tmp_path, 10) == []
    write_sealed(tmp_path, STORED)
    assert safe_position(tmp_path) == 50 and sealed_extents(tmp_path, 50) == []


@pytest.mark.parametrize("content", [b"", b"junk", b"{}", b'{"weirpool":1}', bytes(70_000)])
def test_damage_is_named_and_frees_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SEALED).write_bytes(content)
    with pytest.raises(JournalCorrupt, match="_sealed: does not say"):
        load_sealed(tmp_path)
    assert safe_position(tmp_path) == 0


def test_the_state_of_another_log_is_refused(tmp_path: Path) -> None:
    write_sealed(tmp_path, STATE)
    with pytest.raises(JournalCorrupt, match="belongs to log log"):
        load_sealed(tmp_path, "other")
    content = (tmp_path / SEALED).read_bytes()
    (tmp_path / SEALED).write_bytes(content.replace(b'"end":50', b'"end":51'))
    with pytest.raises(JournalCorrupt, match="checksum"):
        load_sealed(tmp_path)


def test_a_journal_has_one_store(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    assert store_uri(journal) is None
    record_store(journal, "s3://bucket/a")
    record_store(journal, "s3://bucket/a")
    assert store_uri(journal) == "s3://bucket/a"
    with pytest.raises(JournalMismatch, match="are in s3://bucket/a, not in s3://bucket/b"):
        record_store(journal, "s3://bucket/b")
    for content in (b"junk", b'{"weirpool":2,"uri":"x"}'):
        (journal / STORE).write_bytes(content)
        with pytest.raises(JournalCorrupt, match="does not name a store"):
            store_uri(journal)


def test_one_store_may_be_written_in_several_ways(tmp_path: Path) -> None:
    record_store(tmp_path, "s3://b/x?region=eu&endpoint=http://e")
    record_store(tmp_path, "s3://b/x/?endpoint=http://e&region=eu")
    assert store_uri(tmp_path) == "s3://b/x?region=eu&endpoint=http://e"
    with pytest.raises(JournalMismatch):
        record_store(tmp_path, "s3://b/xy?region=eu&endpoint=http://e")


def test_the_record_only_goes_forward(tmp_path: Path) -> None:
    record_sealed(tmp_path, STATE)
    record_sealed(tmp_path, SealedState("log", 10, 40, 3_000, stored=False))
    assert load_sealed(tmp_path) == STATE
    later = SealedState("log", 20, 60, 4_000, stored=False, floor=20)
    record_sealed(tmp_path, later)
    record_sealed(tmp_path, STATE)
    assert load_sealed(tmp_path) == later
    other = SealedState("other", 0, 5, 100, stored=True)
    record_sealed(tmp_path, other)
    assert load_sealed(tmp_path) == other


def test_the_floor_only_rises(tmp_path: Path) -> None:
    assert not raise_floor(tmp_path, "log", 30)
    record_sealed(tmp_path, STATE)
    for floor, expected in ((30, 30), (20, 30), (40, 40)):
        assert raise_floor(tmp_path, "log", floor)
        assert load_sealed(tmp_path) == replace(STATE, floor=expected)
    record_sealed(tmp_path, SealedState("log", 10, 60, 5_000, stored=False))
    assert load_sealed(tmp_path) == SealedState("log", 10, 60, 5_000, stored=False, floor=40)
