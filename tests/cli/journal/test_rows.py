from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.conftest import Weirpool, assert_one_line
from tests.cli.journal.logs import fill
from weirpool.journal import ITEMS, JournalWriter


def test_tail_prints_the_last_rows(weirpool: Weirpool, tmp_path: Path) -> None:
    fill(tmp_path, "a", 20)
    assert weirpool("journal", "tail", str(tmp_path)).lines == [b"%d" % row for row in range(10, 20)]
    assert weirpool("journal", "tail", str(tmp_path), "-n", "0").lines == []
    assert weirpool("journal", "tail", str(tmp_path), "-n", "100").lines == [b"%d" % row for row in range(20)]


@pytest.mark.parametrize("json", [("--json",), ("--format", "json")], ids=" ".join)
def test_tail_and_dump_print_the_same_objects(weirpool: Weirpool, tmp_path: Path, json: tuple[str, ...]) -> None:
    fill(tmp_path, "a", 20)
    dumped = weirpool("journal", "dump", str(tmp_path), "--from", "18", *json).objects
    assert weirpool("journal", "tail", str(tmp_path), "-n", "2", *json).objects == dumped
    for row, position in zip(dumped, (18, 19), strict=True):
        assert list(row) == ["position", "time", "stream", "data", "metadata"]
        assert (row["position"], row["stream"], row["data"], row["metadata"]) == (
            position,
            "flights",
            f"{position}",
            None,
        )
        assert datetime.now(UTC) - datetime.fromisoformat(row["time"]) < timedelta(minutes=5)


@pytest.mark.parametrize("verb", [("tail", "-n", "1"), ("dump", "--from", "19")], ids=lambda verb: verb[0])
def test_text_on_a_terminal_has_positions_too(
    weirpool: Weirpool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    fill(tmp_path, "a", 19)
    data = pa.array([b"x\x1b[2Jy"], pa.binary())
    with JournalWriter.open(tmp_path, "a", fsync=False) as writer:
        writer.append(pa.RecordBatch.from_arrays([data, pa.nulls(1, pa.binary())], schema=ITEMS), "fli\nghts")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    (line,) = weirpool("journal", verb[0], str(tmp_path), *verb[1:]).lines
    assert re.fullmatch(rb"19 20\d\d-\d\d-\d\dT[\d:.]+\+00:00 fli\\nghts x\\x1b\[2Jy", line)
    monkeypatch.setenv("NO_COLOR", "1")
    (row,) = weirpool("journal", verb[0], str(tmp_path), *verb[1:], "--json").objects
    assert (row["position"], row["data"]) == (19, "x\x1b[2Jy")


def test_tail_needs_one_log(weirpool: Weirpool, tmp_path: Path) -> None:
    fill(tmp_path, "a", 1)
    fill(tmp_path, "b", 2)
    result = weirpool("journal", "tail", str(tmp_path))
    assert result.code == 2
    assert "a, b" in result.err
    assert_one_line(result)
    assert weirpool("journal", "tail", str(tmp_path), "--source", "b").lines == [b"0", b"1"]


def test_dump_prints_a_range(weirpool: Weirpool, tmp_path: Path) -> None:
    fill(tmp_path, "a", 20)
    dump = ("journal", "dump", str(tmp_path))
    assert weirpool(*dump).lines == [b"%d" % row for row in range(20)]
    assert weirpool(*dump, "--from", "3", "--to", "5").lines == [b"3", b"4"]
    assert weirpool(*dump, "--from", "-2").lines == [b"18", b"19"]
    assert weirpool(*dump, "--from", "2000-01-01T00:00:00+00:00", "--to", "1").lines == [b"0"]
    assert weirpool(*dump, "--from", "2100-01-01").lines == []
    (row,) = weirpool(*dump, "--from", "7", "--to", "8", "--json").objects
    assert (row["position"], row["stream"], row["data"], row["metadata"]) == (7, "flights", "7", None)


@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_dump_writes_tables(weirpool: Weirpool, tmp_path: Path, format: str) -> None:
    fill(tmp_path / "journal", "a", 20)
    out = tmp_path / "rows"
    out.write_text("before")
    dump = ("journal", "dump", str(tmp_path / "journal"), "--from", "5", "--format", format)
    assert weirpool(*dump, "--out", str(out), "--yes").code == 0
    table = pyarrow.parquet.read_table(out) if format == "parquet" else pa.ipc.open_stream(out.read_bytes()).read_all()
    assert table["position"].to_pylist() == list(range(5, 20))
    # Metadata may contain credentials.
    assert out.stat().st_mode & 0o777 == 0o600 and not list(tmp_path.glob(".*"))
    assert "--out" in weirpool(*dump).err


def test_dump_refuses_places_that_are_not(weirpool: Weirpool, tmp_path: Path) -> None:
    fill(tmp_path, "a", 20)
    result = weirpool("journal", "dump", str(tmp_path), "--from", "yesterday")
    assert result.code == 2
    assert "--from is 'yesterday'; use a position" in result.err
    result = weirpool("journal", "dump", str(tmp_path), "--to", "99")
    assert result.code == 1
    assert "positions 20 to 98 are not in the log" in result.err
    assert weirpool("journal", "dump", str(tmp_path), "-o", "rows").code == 2
