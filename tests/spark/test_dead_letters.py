from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from weirpool import Undelivered
from weirpool.spark.dead_letters import COLUMNS, keep
from weirpool.spark.rejection import Rejection

ROWS = [Rejection(1, 5, "0x301", "late", b"b", b"m"), Rejection(0, 9, "0x301", "odd", b"a", None)]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_micro_batch_has_one_file_however_often_it_runs(tmp_path: Path, scheme: str) -> None:
    place = f"{scheme}{tmp_path}/dead"
    keep(place, 10, "q", 3, ROWS)
    keep(place, 10, "q", 3, ROWS)
    keep(place, 10, "q", 4, ROWS[:1])
    table = pq.read_table(tmp_path / "dead", partitioning=None)
    assert table.schema.equals(COLUMNS)
    assert [(row["batch"], row["partition"], row["index"]) for row in table.to_pylist()] == [
        (3, 0, 9),
        (3, 1, 5),
        (4, 1, 5),
    ]
    keep(place, 10, "q", 3, [])
    keep(place, 10, "q", 5, [])
    assert [path.name for path in (tmp_path / "dead").iterdir()] == ["q-00000000000000000004.parquet"]


def test_too_many_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Undelivered, match="2 rows of micro-batch 3 were rejected"):
        keep(str(tmp_path), 1, "q", 3, ROWS)
    assert list(tmp_path.iterdir()) == []
