from __future__ import annotations

from pathlib import Path

import pytest

from penstock import DataLost, LocalError
from penstock.spark.options import SourceOptions
from penstock.spark.view import REMOTE_SECONDS, JournalView

from .journals import fill, options


def test_sees_all_sources_and_those_that_come(tmp_path: Path) -> None:
    view = JournalView(options(tmp_path))
    view.refresh()
    assert view.readers == {}
    fill(tmp_path, "a", 5)
    view.refresh()
    assert view.ends() == {"a": 5}
    fill(tmp_path, "a", 7)
    fill(tmp_path, "b", 2)
    view.refresh()
    assert view.ends() == {"a": 7, "b": 2}


def test_sees_only_the_sources_that_were_named(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    view = JournalView(options(tmp_path, source="b,c"))
    view.refresh()
    assert view.ends() == {"b": 5, "c": 0}


def test_looks_at_a_remote_journal_but_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(SourceOptions, "remote", True)
    view = JournalView(options(tmp_path), clock=lambda: now)
    fill(tmp_path, "a", 5)
    view.refresh()
    fill(tmp_path, "a", 6)
    view.refresh()
    assert view.ends() == {"a": 5}
    now += REMOTE_SECONDS
    view.refresh()
    assert view.ends() == {"a": 6}


def test_places_become_positions(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    view = JournalView(options(tmp_path))
    view.refresh()
    assert [view.position("a", place) for place in ("earliest", "latest", 3, 5)] == [0, 5, 3, 5]
    with pytest.raises(DataLost, match="ends at position 5, before 6"):
        view.position("a", 6)
    assert view.size("a", 0, 5) > view.size("a", 0, 1) > 0


def test_a_journal_that_lacks_rows_is_explained(tmp_path: Path) -> None:
    def missing(**more: str) -> str:
        view = JournalView(options(tmp_path, **more))
        view.refresh()
        with pytest.raises(LocalError) as caught:
            view.require_rows()
        return str(caught.value)

    assert "has not a source in it: check the path" in missing()
    fill(tmp_path, "flights", 1)
    assert "has not source 'fligts' in it; there are flights" in missing(source="fligts")
    view = JournalView(options(tmp_path))
    view.refresh()
    view.require_rows()
