from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weirpool.demo import pipeline
from weirpool.demo.flights import flights
from weirpool.demo.pipeline import Pipeline
from weirpool.payload import Payload


class Query:
    """A streaming query whose batches a test creates."""

    def __init__(self) -> None:
        self.recentProgress: list[Any] = []
        self.drained = 0
        self.stopped = 0

    def batch(self, rows: int) -> None:
        self.recentProgress.append(SimpleNamespace(batchId=len(self.recentProgress), numInputRows=rows))

    def processAllAvailable(self) -> None:
        self.drained += 1
        self.batch(7)

    def stop(self) -> None:
        self.stopped += 1


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Query, list[int]]:
    """A query after its end, and the reported rows."""
    monkeypatch.setattr(pipeline, "POLL_SECONDS", 0.0)
    query, reports = Query(), []
    batches = [100, 0, 20]

    def collecting() -> bool:
        if batches:
            query.batch(batches.pop(0))
        return bool(batches)

    spark: Any = None
    Pipeline(spark, tmp_path / "journal", tmp_path).follow(
        query,  # type: ignore[arg-type]
        collecting,
        lambda rows, rate: reports.append(rows),
    )
    return query, reports


def test_every_batch_is_reported_once(followed: tuple[Query, list[int]]) -> None:
    assert followed[1] == [100, 120, 127]


def test_query_processes_remaining_rows_before_it_stops(
    followed: tuple[Query, list[int]],
) -> None:
    assert (followed[0].drained, followed[0].stopped) == (1, 1)


def test_the_schema_has_the_fields_of_a_flight() -> None:
    import json

    flight = json.loads(next(flights(Payload())).column("data")[0].as_py())
    assert [column.split()[0] for column in pipeline.SCHEMA.split(", ")] == [*flight]
