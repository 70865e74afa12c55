from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from weirpool.errors import JournalCorrupt
from weirpool.receiving import ledger as module
from weirpool.receiving.ledger import Entry, Ledger


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


def test_query_that_has_just_begun_is_not_taken_for_a_batch_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its first micro-batch would be stored again when it is repeated.
    monkeypatch.setattr(module, "MAX_QUERIES", 20)
    ledger = Ledger(tmp_path, fsync=False)
    for number in range(19):
        ledger.enter(f"old-{number}", Entry(5, number, number + 1))
    ledger.enter("new", Entry(0, 19, 20))
    ledger.enter("another", Entry(5, 20, 21))
    assert ledger.last("new") == Entry(0, 19, 20)
    assert ledger.last("old-0") is None and ledger.last("old-1") is not None


@pytest.mark.parametrize("order", sorted(set(permutations("sssbb"))), ids="".join)
def test_full_ledger_forgets_old_batch_writes_first_and_keeps_the_last_ones(
    order: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_QUERIES", 5)
    monkeypatch.setattr(module, "LAST_WRITES", 1)
    ledger = Ledger(tmp_path, fsync=False)
    for place, kind in enumerate(order):
        ledger.enter(f"{kind}{place}", Entry(0, place, place, kind == "b"))
    ledger.enter("one", Entry(0, 9, 9))
    ledger.enter("two", Entry(0, 9, 9))
    writes = [f"b{place}" for place, kind in enumerate(order) if kind == "b"]
    streaming = [f"s{place}" for place, kind in enumerate(order) if kind == "s"]
    oldest = min(streaming[0], writes[1], key=lambda name: int(name[1:]))
    known = {name for name in (*writes, *streaming, "one", "two") if Ledger(tmp_path).last(name) is not None}
    assert {*writes, *streaming, "one", "two"} - known == {writes[0], oldest}


def test_damage_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_received").write_bytes(b'{"q": [1, 2]}')
    with pytest.raises(JournalCorrupt, match="restore it from a copy"):
        Ledger(tmp_path)


def test_batch_writes_do_not_displace_streaming_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_QUERIES", 2)
    monkeypatch.setattr(module, "LAST_WRITES", 0)
    ledger = Ledger(tmp_path, fsync=False)
    ledger.enter("streaming", Entry(7, 0, 5))
    for query in "abc":
        ledger.enter(query, Entry(0, 5, 5, single=True))
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
