from __future__ import annotations

from pathlib import Path

import pytest
from fuzz import corpora


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "FOLDER", tmp_path)


def test_inputs_are_kept_sorted_and_once() -> None:
    assert corpora.read("new") == []
    assert corpora.add("new", [b"b", b"a", b"b"]) == 2
    assert corpora.add("new", [b"b", b"\0"]) == 1
    assert corpora.read("new") == [b"\0", b"a", b"b"]
    assert corpora.path_of("new").read_text() == "00\n61\n62\n"


def test_shortest_inputs_are_kept_if_space_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "MAX_CORPUS_BYTES", 5)
    assert corpora.add("new", [b"xxxx", b"yy", b"z"]) == 2
    assert corpora.read("new") == [b"yy", b"z"]
