from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line
from tests.cli.journal.logs import fill, spoil
from weirpool.journal.layout import LOCK, SECRET, log_folder


def test_ls_lists_every_log(weirpool: Weirpool, tmp_path: Path) -> None:
    fill(tmp_path, "a", 3)
    fill(tmp_path, "b", 2000)
    first, second = weirpool("journal", "ls", str(tmp_path)).out.decode().splitlines()
    assert first.startswith("a: positions 0 to 3, ")
    assert second.startswith("b: positions 0 to 2,000, ")
    assert second.endswith(" bytes, 0 gaps")


@pytest.mark.parametrize("verb", [["ls"], ["tail"], ["verify"], ["forget", "reader"]], ids=" ".join)
def test_no_journal_is_wrong_use(weirpool: Weirpool, verb: list[str], tmp_path: Path) -> None:
    for folder in (f"{tmp_path}/none", str(tmp_path)):
        result = weirpool("journal", verb[0], folder, *verb[1:])
        assert result.code == 2
        assert "no journal" in result.err
        assert_one_line(result)


@pytest.mark.parametrize("verb", [["ls"], ["tail"], ["verify"], ["forget", "reader"]], ids=" ".join)
def test_no_such_log_is_wrong_use(weirpool: Weirpool, verb: list[str], tmp_path: Path) -> None:
    fill(tmp_path, "a", 1)
    result = weirpool("journal", verb[0], str(tmp_path), *verb[1:], "--source", "b")
    assert result.code == 2
    assert "has no log 'b'; it has a" in result.err
    assert_one_line(result)


def test_one_bad_log_leaves_the_others_listed(weirpool: Weirpool, tmp_path: Path) -> None:
    spoil(tmp_path)
    result = weirpool("journal", "ls", str(tmp_path))
    first, third = result.out.decode().splitlines()
    assert result.code == 1
    assert first.startswith("a: positions 0 to 5, ")
    assert third.startswith("c: positions 0 to 5, ")
    assert third.endswith("0 gaps, 3 to 4 damaged")
    second, fourth = result.err.splitlines()
    assert second.startswith("weirpool: b: ")
    assert fourth.startswith("weirpool: c: rows are damaged")
    assert weirpool("journal", "ls", str(tmp_path), "--source", "a").code == 0
    # Damage is an error even without --against.
    assert weirpool("journal", "ls", str(tmp_path), "--source", "c").code == 1
    one, two, three = weirpool("journal", "ls", str(tmp_path), "--json").objects
    assert (one["source"], one["end"], one["damaged"]) == ("a", 5, [])
    assert "no _log.json" in two["error"]
    assert three["damaged"] == [[3, 5]]


def test_log_without_rows_is_not_damaged(weirpool: Weirpool, tmp_path: Path) -> None:
    fill(tmp_path, "a", 3)
    folder = log_folder(tmp_path, "b")
    folder.mkdir()
    (folder / LOCK).touch()
    (folder / SECRET).touch()
    for verb in ("ls", "verify"):
        result = weirpool("journal", verb, str(tmp_path))
        assert result.code == 0
        assert result.err == ""
        assert result.out.decode().splitlines()[1] == "b: nothing collected yet"
        assert weirpool("journal", verb, str(tmp_path), "--json").objects[1]["uuid"] == ""
    result = weirpool("journal", "repair", str(tmp_path), "--source", "b")
    assert (result.code, result.out) == (0, b"b: nothing to do\n")
