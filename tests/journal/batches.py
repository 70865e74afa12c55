"""Rows for journals."""

from __future__ import annotations

import pyarrow as pa


def batch(first: int, count: int, size: int = 20) -> pa.RecordBatch:
    """Return items that tell their position."""
    data = [f"{number:08d}".encode().ljust(size, b".") for number in range(first, first + count)]
    metadata = [None if number % 3 else b"m" for number in range(first, first + count)]
    return pa.record_batch({"data": pa.array(data, pa.binary()), "metadata": pa.array(metadata, pa.binary())})


def numbers(batches) -> list[int]:
    """Return the positions that items tell, and check them against their rows."""
    found: list[int] = []
    for each in batches:
        told = [int(value[:8]) for value in each.column("data").to_pylist()]
        assert told == each.column("position").to_pylist()
        found += told
    return found
