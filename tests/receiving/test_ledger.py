from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import JournalCorrupt
from penstock.receiving import ledger as module
from penstock.receiving.ledger import Entry, Ledger


def test_last_micro_batch_of_each_query_is_kept(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.last("q") is None
    ledger.enter("q", Entry(0, 0, 5))
    ledger.enter("p", Entry(3, 5, 9))
    ledger.enter("q", Entry(1, 9, 9))
    again = Ledger(tmp_path)
    assert again.last("q") == Entry(1, 9, 9)
    assert again.last("p") == Entry(3, 5, 9)


def test_queries_that_have_not_written_for_longest_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_QUERIES", 2)
    ledger = Ledger(tmp_path, fsync=False)
    for batch, query in enumerate("abac", 1):
        ledger.enter(query, Entry(batch, 0, 0))
    assert [query for query in "abc" if Ledger(tmp_path).last(query)] == ["a", "c"]


def test_damage_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_received").write_bytes(b'{"q": [1, 2]}')
    with pytest.raises(JournalCorrupt, match="restore it from a copy"):
        Ledger(tmp_path)


def test_batch_writes_do_not_displace_streaming_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_QUERIES", 2)
    ledger = Ledger(tmp_path, fsync=False)
    ledger.enter("streaming", Entry(7, 0, 5))
    for query in "abc":
        ledger.enter(query, Entry(0, 5, 5))
    assert Ledger(tmp_path).last("streaming") == Entry(7, 0, 5)
    assert [query for query in "abc" if Ledger(tmp_path).last(query)] == ["c"]


def test_entry_that_was_not_written_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path, fsync=False)
    with monkeypatch.context() as patch:
        patch.setattr(module, "replace_file", lambda *arguments, **named: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ledger.enter("q", Entry(0, 0, 5))
    assert ledger.last("q") is None
    ledger.enter("q", Entry(0, 0, 5))
    assert Ledger(tmp_path).last("q") == Entry(0, 0, 5)
