from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.journal.format import ITEMS
from penstock.journal.writer import JournalWriter
from tests.cli.conftest import Penstock, assert_one_line


def fill(journal: Path, source: str, rows: int) -> None:
    """Write a log whose rows tell their positions."""
    data = pa.array([b"%d" % position for position in range(rows)], pa.binary())
    batch = pa.RecordBatch.from_arrays([data, pa.nulls(rows, pa.binary())], schema=ITEMS)
    with JournalWriter.open(journal, source, fsync=False) as writer:
        writer.append(batch, "flights")


def test_ls_tells_every_log(penstock: Penstock, tmp_path: Path) -> None:
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


def test_verify_counts_what_is_sound(penstock: Penstock, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("verb", ["ls", "tail", "verify"])
def test_no_journal_is_wrong_use(penstock: Penstock, verb: str, tmp_path: Path) -> None:
    for arguments in ((f"{tmp_path}/none",), (str(tmp_path),)):
        result = penstock("journal", verb, *arguments)
        assert result.code == 2
        assert "no journal" in result.err
        assert_one_line(result)


@pytest.mark.parametrize("verb", ["ls", "tail", "verify"])
def test_no_such_log_is_wrong_use(penstock: Penstock, verb: str, tmp_path: Path) -> None:
    fill(tmp_path, "a", 1)
    result = penstock("journal", verb, str(tmp_path), "--source", "b")
    assert result.code == 2
    assert "has no log 'b'; it has a" in result.err
    assert_one_line(result)
