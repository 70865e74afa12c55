"""Rows as the items of a subscriber."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from tests.journal.logs import SOURCE, write
from weirpool import Payload
from weirpool.journal import SCHEMA, Gap, JournalReader
from weirpool.serving.items import gap_item, row_items
from weirpool.serving.subscriptions import Subscription

GAP = Gap(7, datetime(2026, 1, 1, tzinfo=UTC), "gone", lost=(5, 7))


def rows(tmp_path: Path) -> pa.RecordBatch:
    write(tmp_path, 10)
    return next(iter(JournalReader(tmp_path, SOURCE).read(4, 7)))


def test_items_are_as_they_were_collected(tmp_path: Path) -> None:
    found = row_items(Subscription(), rows(tmp_path))
    assert isinstance(found, pa.RecordBatch)
    assert found.to_pydict() == {"data": [b"4", b"5", b"6"], "metadata": [b"m4", None, b"m6"]}


def test_without_metadata_only_if_there_is_none_or_it_is_asked_for(tmp_path: Path) -> None:
    batch = rows(tmp_path)
    assert row_items(Subscription(), batch, annotated=False).schema.names == ["data"]
    assert row_items(Subscription(metadata="none"), batch).schema.names == ["data"]
    assert row_items(Subscription(metadata="item"), batch, annotated=False).schema.names == ["data", "metadata"]


def test_objects_have_what_is_no_text_in_base64(tmp_path: Path) -> None:
    batch = rows(tmp_path).slice(0, 1)
    batch = batch.set_column(3, "data", pa.array([b"\xff\xfe"], pa.binary()))
    [text] = row_items(Subscription(form="json"), batch)["data"].to_pylist()
    found = json.loads(text)
    assert found["data_base64"] == "//4=" and found["metadata"] == "m4" and "data" not in found
    told = json.loads(gap_item(Subscription(form="json"), GAP).data)
    assert told["gap"]["position"] == 7


def test_metadata_may_tell_the_position(tmp_path: Path) -> None:
    batch = rows(tmp_path)
    found = row_items(Subscription(metadata="position"), batch)
    assert isinstance(found, pa.RecordBatch)
    time = batch["time"].view(pa.int64())[0].as_py()
    assert [json.loads(text) for text in found["metadata"].to_pylist()] == [
        {"position": at, "time": time} for at in (4, 5, 6)
    ]


def test_arrow_has_all_columns_and_gaps_no_rows(tmp_path: Path) -> None:
    asked, batch = Subscription(form="arrow"), rows(tmp_path)
    found = row_items(asked, batch)
    assert isinstance(found, Payload)
    assert pa.ipc.open_stream(found.data).read_next_batch().equals(batch)
    stream = pa.ipc.open_stream(gap_item(asked, GAP).data)
    told = json.loads(stream.schema.metadata[b"weirpool.gap"])
    assert told["lost"] == [5, 7] and stream.schema.equals(SCHEMA) and not stream.read_all().num_rows
    assert json.loads(gap_item(Subscription(), GAP).metadata or b"")["gap"] == told
