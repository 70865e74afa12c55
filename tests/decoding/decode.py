"""Runs decoders, and checks what must hold for any input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from weirpool.decoding.decoded import Decoder


def decode(decoder: Decoder, *items: bytes | None) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return the rows of some items, and the reasons by row."""
    rows: list[dict[str, Any]] = []
    malformed: dict[int, str] = {}
    count = 0
    for decoded in decoder.decode(pa.array(items, pa.binary())):
        decoded.fields.validate(full=True)
        assert [*decoded.malformed] == sorted(decoded.malformed)
        found = decoded.fields.to_pylist()
        assert all(set(found[row].values()) == {None} for row in decoded.malformed)
        assert len(found) == (decoded.count if decoded.items is None else len(decoded.items))
        malformed |= {len(rows) + row: why for row, why in decoded.malformed.items()}
        rows += found
        count += decoded.count
    assert count == len(items)
    assert all("\n" not in why and len(why) <= 200 for why in malformed.values())
    return rows, malformed


def values(decoder: Decoder, *items: bytes) -> list[Any]:
    """Return the values of the only field of items that are sound; "malformed" for others."""
    rows, malformed = decode(decoder, *items)
    return ["malformed" if row in malformed else next(iter(found.values())) for row, found in enumerate(rows)]


def schema(**fields: pa.DataType) -> pa.Schema:
    """Return a schema."""
    return pa.schema(list(fields.items()))


def reasons(decoder: Decoder, items: Sequence[bytes]) -> list[str]:
    """Return why items are malformed."""
    _, malformed = decode(decoder, *items)
    return [*malformed.values()]
