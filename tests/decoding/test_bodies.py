from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

from weirpool.decoding.bodies import batch_size

from .messages import stream

TABLE = pa.table({"a": pa.array([0] * 10_000, pa.int64()), "b": pa.array(["x", None] * 5_000).dictionary_encode()})


def messages(item: bytes) -> list[pa.ipc.Message]:
    return [message for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(item)) if message.type != "schema"]


def test_a_plain_body_has_its_own_size() -> None:
    dictionary, batch = messages(stream(TABLE))
    assert batch_size(dictionary) == (1, len(dictionary.body))
    assert batch_size(batch) == (10_000, len(batch.body))


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_body_has_the_size_that_it_claims(codec: str) -> None:
    dictionary, batch = messages(stream(TABLE, compression=codec))
    rows, size = batch_size(batch)
    assert rows == 10_000 and 90_000 <= size <= 150_000 and size > 10 * len(batch.body)
    assert batch_size(dictionary)[0] == 1


def with_claim(claim: int) -> Any:
    """Return a compressed batch whose first buffer that is not empty claims this size."""
    item = bytearray(stream(pa.table({"a": pa.array([0] * 10_000, pa.int64())}), compression="zstd"))
    at = item.index(struct.pack("<q", 80_000) + b"\x28\xb5\x2f\xfd")
    item[at : at + 8] = struct.pack("<q", claim)
    return messages(bytes(item))[0]


def test_claims_are_believed_and_never_negative() -> None:
    assert batch_size(with_claim(1 << 60))[1] == 1 << 60
    with pytest.raises(ValueError, match="negative"):
        batch_size(with_claim(-2))
