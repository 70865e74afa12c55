"""Rows of a journal as the items of a subscriber: as they were collected, with their positions, or in Arrow."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..journal.format import SCHEMA
from ..journal.gaps import Gap
from ..payload import Payload
from .subscriptions import Subscription

__all__ = ["gap_item", "row_items"]


GAP: Final = "weirpool.gap"
"""The key of a gap in the metadata of an Arrow schema."""


def row_items(asked: Subscription, rows: pa.RecordBatch, *, annotated: bool = True) -> Any:
    """Return rows in the form that was asked for.

    Args:
        asked: The request.
        rows: The rows, with all columns.
        annotated: Whether the connection has metadata.

    Returns:
        Many items as a record batch, or one as a Payload.

    """
    if asked.form == "arrow":
        return Payload(_stream(rows, SCHEMA))
    if asked.form == "json":
        data = pa.array([msgspec.json.encode(_object(row)) for row in rows.to_pylist()], pa.binary())
        return pa.RecordBatch.from_arrays([data], ["data"])
    if asked.metadata == "position":
        return pa.RecordBatch.from_arrays([rows.column("data"), _positions(rows)], ["data", "metadata"])
    own = asked.metadata == "item" or (asked.metadata is None and annotated)
    return rows.select(["data", "metadata"] if own else ["data"])


def gap_item(asked: Subscription, gap: Gap) -> Payload:
    """Return a gap as an item without data, as a JSON object, or as an Arrow stream without rows."""
    told = {"position": gap.position, "time": gap.time, "reason": gap.reason, "lost": gap.lost}
    if asked.form == "arrow":
        schema = SCHEMA.with_metadata({GAP: msgspec.json.encode(told)})
        nothing = pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)
        return Payload(_stream(nothing, schema))
    text = msgspec.json.encode({"gap": told})
    return Payload(text) if asked.form == "json" else Payload(b"", text)


def _object(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as an object; bytes that are no text are in base64, under another name."""
    found = {"position": row["position"], "time": row["time"]}
    for name in ("data", "metadata"):
        content = row[name]
        if content is not None:
            try:
                found[name] = content.decode()
            except UnicodeDecodeError:
                found[f"{name}_base64"] = content
    return found


def _stream(rows: pa.RecordBatch, schema: pa.Schema) -> bytes:
    """Return an Arrow IPC stream with a single batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue())


def _positions(rows: pa.RecordBatch) -> pa.Array:
    """Return metadata with position and time, a column at a time: no row is created in Python."""
    positions = rows.column("position").cast(pa.string())
    times = rows.column("time").view(pa.int64()).cast(pa.string())
    text = pc.binary_join_element_wise('{"position":', positions, ',"time":', times, "}", "")
    return text.cast(pa.binary())
