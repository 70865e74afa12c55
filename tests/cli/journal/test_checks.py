from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.conftest import Weirpool, assert_one_line
from tests.cli.journal.logs import fill, spoil


def test_verify_counts_valid_rows(weirpool: Weirpool, tmp_path: Path) -> None:
    fill(tmp_path, "a", 3)
    result = weirpool("journal", "verify", str(tmp_path))
    assert result.code == 0
    assert result.out.startswith(b"a: 3 rows from 0 to 3 are sound; 0 gaps; head ")


def test_verify_finds_damage(weirpool: Weirpool, tmp_path: Path) -> None:
    fill(tmp_path, "a", 1000)
    (segment,) = tmp_path.glob("source=a/*.arrows")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    result = weirpool("journal", "verify", str(tmp_path))
    assert result.code == 1
    assert segment.name in result.err
    assert_one_line(result)


def test_verify_continues_after_a_damaged_log(weirpool: Weirpool, tmp_path: Path) -> None:
    spoil(tmp_path)
    result = weirpool("journal", "verify", str(tmp_path))
    assert result.code == 1
    assert [line[:10] for line in result.out.decode().splitlines()] == ["a: 5 rows ", "c: 3 rows "]
    assert "positions 3 to 4 are damaged" in result.err
    assert "no _log.json" in result.err
    sounds = [each["sound"] for each in weirpool("journal", "verify", str(tmp_path), "--json").objects]
    assert sounds == [True, False, False]


def test_verify_compares_two_copies(weirpool: Weirpool, tmp_path: Path) -> None:
    fill(tmp_path / "one", "a", 3)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    result = weirpool("journal", "verify", str(tmp_path / "one"), "--against", str(tmp_path / "two"))
    assert result.code == 0
    assert b"has the same rows up to position 3" in result.out
    fill(tmp_path / "one", "a", 3)
    fill(tmp_path / "two", "a", 3)
    result = weirpool("journal", "verify", str(tmp_path / "one"), "--against", str(tmp_path / "two"))
    assert result.code == 1
    assert "differs from this copy at position 3" in result.err


def test_repair_shows_its_actions_and_applies_them(weirpool: Weirpool, tmp_path: Path) -> None:
    spoil(tmp_path)
    result = weirpool("journal", "repair", str(tmp_path))
    assert result.code == 1
    lines = result.out.decode().splitlines()
    assert lines[0] == "a: nothing to do"
    assert lines[1].startswith("c: record positions 3 to 4 as lost")
    assert lines[-1].startswith("c: not repaired: rows or records are lost")
    assert "b: " in result.err
    assert weirpool("journal", "repair", str(tmp_path), "--source", "c", "--apply").code == 1
    (done,) = weirpool(
        "journal", "repair", str(tmp_path), "--source", "c", "--apply", "--accept-loss", "--json"
    ).objects
    assert (done["lost"], done["refused"]) == ([[3, 5]], "")
    assert weirpool("journal", "repair", str(tmp_path), "--source", "c").code == 0
    assert weirpool("journal", "verify", str(tmp_path), "--source", "c").code == 0
