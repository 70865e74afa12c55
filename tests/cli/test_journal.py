from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.journal import Journal
from penstock.journal.format import ITEMS
from penstock.journal.layout import COMMITTED, LOCK, SECRET, log_folder
from penstock.journal.retention import commit
from penstock.journal.writer import JournalWriter
from tests.cli.conftest import Penstock, assert_one_line


def fill(journal: Path, source: str, rows: int) -> None:
    """Write a log whose rows contain their positions."""
    data = pa.array([b"%d" % position for position in range(rows)], pa.binary())
    batch = pa.RecordBatch.from_arrays([data, pa.nulls(rows, pa.binary())], schema=ITEMS)
    with JournalWriter.open(journal, source, fsync=False) as writer:
        writer.append(batch, "flights")


def test_ls_lists_every_log(penstock: Penstock, tmp_path: Path) -> None:
    fill(tmp_path, "a", 3)
    fill(tmp_path, "b", 2000)
    first, second = penstock("journal", "ls", str(tmp_path)).out.decode().splitlines()
    assert first.startswith("a: positions 0 to 3, ")
    assert second.startswith("b: positions 0 to 2,000, ")
    assert second.endswith(" bytes, 0 gaps")


def test_tail_prints_the_last_rows(penstock: Penstock, tmp_path: Path) -> None:
    fill(tmp_path, "a", 20)
    assert penstock("journal", "tail", str(tmp_path)).lines == [b"%d" % row for row in range(10, 20)]
    assert penstock("journal", "tail", str(tmp_path), "-n", "0").lines == []
    assert penstock("journal", "tail", str(tmp_path), "-n", "100").lines == [b"%d" % row for row in range(20)]
    last = penstock("journal", "tail", str(tmp_path), "-n", "1", "--json").objects
    assert last == [{"data": "19", "metadata": None}]


def test_tail_needs_one_log(penstock: Penstock, tmp_path: Path) -> None:
    fill(tmp_path, "a", 1)
    fill(tmp_path, "b", 2)
    result = penstock("journal", "tail", str(tmp_path))
    assert result.code == 2
    assert "a, b" in result.err
    assert_one_line(result)
    assert penstock("journal", "tail", str(tmp_path), "--source", "b").lines == [b"0", b"1"]


def test_verify_counts_valid_rows(penstock: Penstock, tmp_path: Path) -> None:
    fill(tmp_path, "a", 3)
    result = penstock("journal", "verify", str(tmp_path))
    assert result.code == 0
    assert result.out.startswith(b"a: 3 rows from 0 to 3 are sound; 0 gaps; head ")


def test_verify_finds_damage(penstock: Penstock, tmp_path: Path) -> None:
    fill(tmp_path, "a", 1000)
    (segment,) = tmp_path.glob("source=a/*.arrows")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    result = penstock("journal", "verify", str(tmp_path))
    assert result.code == 1
    assert segment.name in result.err
    assert_one_line(result)


@pytest.mark.parametrize("verb", [["ls"], ["tail"], ["verify"], ["forget", "reader"]], ids=" ".join)
def test_no_journal_is_wrong_use(penstock: Penstock, verb: list[str], tmp_path: Path) -> None:
    for folder in (f"{tmp_path}/none", str(tmp_path)):
        result = penstock("journal", verb[0], folder, *verb[1:])
        assert result.code == 2
        assert "no journal" in result.err
        assert_one_line(result)


@pytest.mark.parametrize("verb", [["ls"], ["tail"], ["verify"], ["forget", "reader"]], ids=" ".join)
def test_no_such_log_is_wrong_use(penstock: Penstock, verb: list[str], tmp_path: Path) -> None:
    fill(tmp_path, "a", 1)
    result = penstock("journal", verb[0], str(tmp_path), *verb[1:], "--source", "b")
    assert result.code == 2
    assert "has no log 'b'; it has a" in result.err
    assert_one_line(result)


def spoil(journal: Path) -> None:
    """Create three logs, of which the second is garbage and the third is truncated."""
    for source in "abc":
        fill(journal, source, 3)
        fill(journal, source, 2)
    for path in (journal / "source=b").iterdir():
        path.unlink()
    (journal / "source=b" / "00000000000000000000.arrows").write_bytes(b"junk")
    (cut,) = (journal / "source=c").glob("*.arrows")
    os.truncate(cut, cut.stat().st_size - 1)


def test_one_bad_log_leaves_the_others_listed(penstock: Penstock, tmp_path: Path) -> None:
    spoil(tmp_path)
    result = penstock("journal", "ls", str(tmp_path))
    first, third = result.out.decode().splitlines()
    assert result.code == 1
    assert first.startswith("a: positions 0 to 5, ")
    assert third.startswith("c: positions 0 to 5, ")
    assert third.endswith("0 gaps, 3 to 4 damaged")
    second, fourth = result.err.splitlines()
    assert second.startswith("penstock: b: ")
    assert fourth.startswith("penstock: c: rows are damaged")
    assert penstock("journal", "ls", str(tmp_path), "--source", "a").code == 0
    # Damage is an error even without --against.
    assert penstock("journal", "ls", str(tmp_path), "--source", "c").code == 1
    one, two, three = penstock("journal", "ls", str(tmp_path), "--json").objects
    assert (one["source"], one["end"], one["damaged"]) == ("a", 5, [])
    assert "no _log.json" in two["error"]
    assert three["damaged"] == [[3, 5]]


def test_verify_continues_after_a_damaged_log(penstock: Penstock, tmp_path: Path) -> None:
    spoil(tmp_path)
    result = penstock("journal", "verify", str(tmp_path))
    assert result.code == 1
    assert [line[:10] for line in result.out.decode().splitlines()] == ["a: 5 rows ", "c: 3 rows "]
    assert "positions 3 to 4 are damaged" in result.err
    assert "no _log.json" in result.err
    sounds = [each["sound"] for each in penstock("journal", "verify", str(tmp_path), "--json").objects]
    assert sounds == [True, False, False]


def test_log_without_rows_is_not_damaged(penstock: Penstock, tmp_path: Path) -> None:
    fill(tmp_path, "a", 3)
    folder = log_folder(tmp_path, "b")
    folder.mkdir()
    (folder / LOCK).touch()
    (folder / SECRET).touch()
    for verb in ("ls", "verify"):
        result = penstock("journal", verb, str(tmp_path))
        assert result.code == 0
        assert result.err == ""
        assert result.out.decode().splitlines()[1] == "b: nothing collected yet"
        assert penstock("journal", verb, str(tmp_path), "--json").objects[1]["uuid"] == ""
    result = penstock("journal", "repair", str(tmp_path), "b")
    assert (result.code, result.out) == (0, b"b: nothing to do\n")


def test_verify_compares_two_copies(penstock: Penstock, tmp_path: Path) -> None:
    fill(tmp_path / "one", "a", 3)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    result = penstock("journal", "verify", str(tmp_path / "one"), "--against", str(tmp_path / "two"))
    assert result.code == 0
    assert b"has the same rows up to position 3" in result.out
    fill(tmp_path / "one", "a", 3)
    fill(tmp_path / "two", "a", 3)
    result = penstock("journal", "verify", str(tmp_path / "one"), "--against", str(tmp_path / "two"))
    assert result.code == 1
    assert "differs from this copy at position 3" in result.err


def test_repair_shows_its_actions_and_applies_them(penstock: Penstock, tmp_path: Path) -> None:
    spoil(tmp_path)
    result = penstock("journal", "repair", str(tmp_path))
    assert result.code == 1
    lines = result.out.decode().splitlines()
    assert lines[0] == "a: nothing to do"
    assert lines[1].startswith("c: record positions 3 to 4 as lost")
    assert lines[-1].startswith("c: not repaired: rows or records are lost")
    assert "b: " in result.err
    assert penstock("journal", "repair", str(tmp_path), "c", "--apply").code == 1
    (done,) = penstock("journal", "repair", str(tmp_path), "c", "--apply", "--accept-loss", "--json").objects
    assert (done["lost"], done["refused"]) == ([[3, 5]], "")
    assert penstock("journal", "repair", str(tmp_path), "c").code == 0
    assert penstock("journal", "verify", str(tmp_path), "--source", "c").code == 0


@pytest.fixture
def read_journal(tmp_path: Path) -> Path:
    """Return a journal with the logs a and b, which `spark` reads, and c, which has no reader."""
    for source in "abc":
        fill(tmp_path, source, 2_000)
    for cursor, position in (("spark@0", 1_500), ("spark@1", 1_200), ("report", 3)):
        commit(log_folder(tmp_path, "a"), cursor, position)
    commit(log_folder(tmp_path, "b"), "spark", 7)
    return tmp_path


def test_forget_removes_a_reader_from_every_log(penstock: Penstock, read_journal: Path) -> None:
    result = penstock("journal", "forget", str(read_journal), "spark")
    assert result.code == 0
    assert result.out.decode().splitlines() == [
        "a: removed reader spark, which had committed position 1,200",
        "b: removed reader spark, which had committed position 7",
    ]
    journal = Journal(read_journal)
    assert [journal.readers(source) for source in "abc"] == [["report"], [], []]


def test_forget_removes_a_reader_from_one_log(penstock: Penstock, read_journal: Path) -> None:
    result = penstock("journal", "forget", str(read_journal), "spark", "--source", "a", "--json")
    assert result.objects == [{"source": "a", "reader": "spark", "position": 1_200, "cursors": ["spark@0", "spark@1"]}]
    journal = Journal(read_journal)
    assert [journal.readers(source) for source in "abc"] == [["report"], ["spark"], []]


def test_forget_lists_readers_when_the_name_is_unknown(penstock: Penstock, read_journal: Path) -> None:
    result = penstock("journal", "forget", str(read_journal), "nobody")
    assert result.code == 2
    assert "has no reader 'nobody'; its readers are a: report, spark; b: spark; c: none" in result.err
    assert_one_line(result)
    result = penstock("journal", "forget", str(read_journal), "report", "--source", "b")
    assert result.code == 2
    assert "its readers are b: spark" in result.err
    assert Journal(read_journal).readers("a") == ["report", "spark"]


def test_forget_removes_a_reader_with_a_damaged_position(penstock: Penstock, read_journal: Path) -> None:
    (log_folder(read_journal, "b") / COMMITTED / "spark").write_bytes(b"junk")
    result = penstock("journal", "forget", str(read_journal), "spark", "--source", "b")
    assert result.out == b"b: removed reader spark, whose position was damaged\n"
    assert Journal(read_journal).readers("b") == []
