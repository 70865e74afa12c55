"""DataFrames and the results of streaming queries, served to clients."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import weirpool
from weirpool import ApplicationError, Bearer, LocalError, Metadata, Payload, Peer, Service, SetupRejected
from weirpool.journal import JournalReader
from weirpool.spark.tables import SOURCE, Published, publish

from .journals import fill


def service_url(tmp_path: Path) -> str:
    return f"rsocket+memory://{tmp_path.name}"


async def objects(peer: Peer, request: bytes = b"", count: int | None = None) -> list[dict[str, object]]:
    """Return the first items, or all, as objects."""
    found: list[dict[str, object]] = []
    async with peer.stream("rows", request) as items:
        async for item in items:
            found.append(json.loads(item.data))
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("form", ["json", "arrow"])
async def test_a_table_is_served_in_full_to_everybody_and_again_after_a_restart(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    frame = spark.range(20_000).selectExpr("id", "CAST(id AS STRING) AS name").repartition(3)
    for _ in range(2):
        service = Service()
        async with (
            publish(frame, service, "rows", folder=tmp_path / "rows", form=form) as published,
            weirpool.serve(service, service_url(tmp_path)),
            weirpool.connect(service_url(tmp_path)) as peer,
        ):
            # Asked before the table is complete.
            if form == "json":
                one, other = await asyncio.gather(objects(peer), objects(peer))
                assert sorted(int(row["name"]) for row in one) == list(range(20_000))  # type: ignore[call-overload]
                assert one == other and one[0].keys() == {"id", "name"}
            else:
                async with peer.stream("rows") as items:
                    tables = [pa.ipc.open_stream(item.data).read_all() async for item in items]
                assert sorted(pa.concat_tables(tables)["id"].to_pylist()) == list(range(20_000))
            await published.complete()
    assert JournalReader(tmp_path / "rows", SOURCE).end == (20_000 if form == "json" else len(tables))


async def test_the_result_of_a_query_is_served_live_each_row_once(
    spark: SparkSession, journal: Path, tmp_path: Path
) -> None:
    fill(journal, "a", 100)
    seen = []
    for end in (100, 150):
        fill(journal, "a", end)
        frame = spark.readStream.format("weirpool").load(str(journal)).selectExpr("position")
        service = Service()
        async with (
            publish(frame, service, "rows", folder=tmp_path / "rows") as published,
            weirpool.serve(service, service_url(tmp_path)),
            weirpool.connect(service_url(tmp_path)) as peer,
        ):
            seen = await objects(peer, b"0", end)
            assert published.query is not None and published.query.isActive
        assert not published.query.isActive
    assert sorted(int(row["position"]) for row in seen) == list(range(150))  # type: ignore[call-overload]


async def test_a_table_that_cannot_be_computed_fails_its_streams(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(10).selectExpr("assert_true(id < 5, 'secret reason') AS wrong")
    service = Service()
    async with (
        publish(frame, service, "rows", folder=tmp_path / "rows") as published,
        weirpool.serve(service, service_url(tmp_path)),
        weirpool.connect(service_url(tmp_path)) as peer,
    ):
        with pytest.raises(ApplicationError, match="the table could not be computed") as failed:
            await objects(peer)
        assert "secret" not in str(failed.value)
        with pytest.raises(Exception, match="secret reason"):
            await published.complete()


def test_what_cannot_be_published_is_refused_at_once(spark: SparkSession, tmp_path: Path) -> None:
    frame, service = spark.range(1), Service()
    with pytest.raises(LocalError, match="it must be json or arrow"):
        publish(frame, service, "rows", folder=tmp_path, form="csv")
    with pytest.raises(LocalError, match="without columns"):
        publish(frame.drop("id"), service, "rows", folder=tmp_path)
    publish(frame, service, "rows", folder=tmp_path)
    with pytest.raises(LocalError, match="already registered"):
        publish(frame, service, "rows", folder=tmp_path)


@pytest.mark.parametrize("metadata", [None, b"junk", Metadata(auth=Bearer("é")).encode(), Metadata().encode()])
def test_others_may_not_send_rows(metadata: bytes | None) -> None:
    published = SimpleNamespace(_token="secret")
    Published._accept(published, _setup(Metadata(auth=Bearer("secret")).encode()))  # type: ignore[arg-type]
    with pytest.raises(SetupRejected):
        Published._accept(published, _setup(metadata))  # type: ignore[arg-type]


def _setup(metadata: bytes | None) -> Any:
    return SimpleNamespace(payload=Payload(b"", metadata))
