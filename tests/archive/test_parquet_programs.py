"""DuckDB, polars and pandas read sealed segments as they are."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

from tests.archive.logs import fill, seal_all
from tests.journal.logs import SOURCE
from weirpool.journal.format import SCHEMA

FILES = "source=*/*.parquet"
ROWS = 40
COLUMNS = [*SCHEMA.names, "source"]


@pytest.fixture
def files(tmp_path: Path) -> str:
    """A pattern for the files of a sealed log; its last segment is not sealed."""
    fill(tmp_path, 7, 30, 3, 5)
    assert seal_all(tmp_path) == 3
    return str(tmp_path / FILES)


def expected(row: int) -> tuple[int, str, bytes, bytes | None]:
    return row, "numbers", b"%d" % row, None if row % 2 else b"m%d" % row


def test_duckdb_reads_sealed_rows(files: str) -> None:
    query = "SELECT {} FROM read_parquet(?, hive_partitioning=true)"
    with duckdb.connect() as connection:
        rows = connection.execute(query.format("position, stream, data, metadata") + " ORDER BY position", [files])
        assert rows.fetchall() == [expected(row) for row in range(ROWS)]
        assert [name for name, *_ in connection.execute("DESCRIBE " + query.format("*"), [files]).fetchall()] == COLUMNS
        some = query.format("source, count(*)") + " WHERE position >= 35 GROUP BY 1"
        assert connection.execute(some, [files]).fetchall() == [(SOURCE, ROWS - 35)]


def test_polars_reads_sealed_rows(files: str) -> None:
    table = pl.scan_parquet(files, hive_partitioning=True)
    assert table.collect_schema().names() == COLUMNS
    rows = table.select("position", "stream", "data", "metadata").sort("position").collect().rows()
    assert rows == [expected(row) for row in range(ROWS)]
    assert table.filter(pl.col("position") >= 35).select(pl.len()).collect().item() == ROWS - 35


def test_pandas_reads_sealed_rows(files: str) -> None:
    folder = Path(files).parents[1]
    table = pd.concat(pd.read_parquet(path) for path in sorted(folder.glob(FILES)))
    rows = table[["position", "stream", "data", "metadata"]].itertuples(index=False, name=None)
    assert list(rows) == [expected(row) for row in range(ROWS)]
