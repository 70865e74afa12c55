from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.conftest import Penstock, assert_one_line
from tests.cli.journal.logs import fill


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


def test_dump_prints_a_range(penstock: Penstock, tmp_path: Path) -> None:
    fill(tmp_path, "a", 20)
    dump = ("journal", "dump", str(tmp_path))
    assert penstock(*dump).lines == [b"%d" % row for row in range(20)]
    assert penstock(*dump, "--from", "3", "--to", "5").lines == [b"3", b"4"]
    assert penstock(*dump, "--from", "-2").lines == [b"18", b"19"]
    assert penstock(*dump, "--from", "2000-01-01T00:00:00+00:00", "--to", "1").lines == [b"0"]
    assert penstock(*dump, "--from", "2100-01-01").lines == []
    (row,) = penstock(*dump, "--from", "7", "--to", "8", "--json").objects
    assert (row["position"], row["stream"], row["data"], row["metadata"]) == (7, "flights", "7", None)


@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_dump_writes_tables(penstock: Penstock, tmp_path: Path, format: str) -> None:
    fill(tmp_path / "journal", "a", 20)
    out = tmp_path / "rows"
    out.write_text("before")
    dump = ("journal", "dump", str(tmp_path / "journal"), "--from", "5", "--format", format)
    assert penstock(*dump, "--out", str(out)).code == 0
    table = pyarrow.parquet.read_table(out) if format == "parquet" else pa.ipc.open_stream(out.read_bytes()).read_all()
    assert table["position"].to_pylist() == list(range(5, 20))
    # Metadata may contain credentials.
    assert out.stat().st_mode & 0o777 == 0o600 and not list(tmp_path.glob(".*"))
    assert "--out" in penstock(*dump).err


def test_dump_refuses_places_that_are_not(penstock: Penstock, tmp_path: Path) -> None:
    fill(tmp_path, "a", 20)
    result = penstock("journal", "dump", str(tmp_path), "--from", "yesterday")
    assert result.code == 2
    assert "--from is 'yesterday'; use a position" in result.err
    result = penstock("journal", "dump", str(tmp_path), "--to", "99")
    assert result.code == 1
    assert "positions 20 to 98 are not in the log" in result.err
    assert penstock("journal", "dump", str(tmp_path), "-o", "rows").code == 2
