from __future__ import annotations

import pyarrow as pa
import pytest

from weirpool.receiving.digest import RowDigest

DATA = [b"a", b"", b"bc", b"def", b"g"]
METADATA = [None, b"", b"x", None, b"yz"]


def batch(data: list[bytes], metadata: list[bytes | None]) -> pa.RecordBatch:
    return pa.record_batch({"data": pa.array(data, pa.binary()), "metadata": pa.array(metadata, pa.binary())})


def digest(*batches: pa.RecordBatch) -> str:
    running = RowDigest()
    for each in batches:
        running.update(each)
    return running.hexdigest()


def test_digest_does_not_depend_on_batches() -> None:
    whole = batch(DATA, METADATA)
    assert (
        digest(whole) == digest(whole.slice(0, 2), whole.slice(2, 1), whole.slice(3)) == digest(whole, whole.slice(5))
    )
    large = pa.record_batch({"data": pa.array(DATA, pa.large_binary()), "metadata": whole.column("metadata")})
    assert digest(large) == digest(whole)


@pytest.mark.parametrize(
    ("data", "metadata"),
    [
        ([b"", b"a", b"bc", b"def", b"g"], METADATA),
        ([b"a", b"", b"bcd", b"ef", b"g"], METADATA),
        ([*DATA[:4], b"h"], METADATA),
        (DATA, [b"", b"", b"x", None, b"yz"]),
        (DATA, [b"x", b"", None, None, b"yz"]),
        (DATA[:4], METADATA[:4]),
    ],
)
def test_other_rows_have_another_digest(data: list[bytes], metadata: list[bytes | None]) -> None:
    assert digest(batch(data, metadata)) != digest(batch(DATA, METADATA))


def test_nulls_may_have_any_bytes_behind_them() -> None:
    # Arrow says nothing about the bytes of a null.
    valid = pa.py_buffer(b"\x02")
    offsets = pa.array([0, 2, 3], pa.int32()).buffers()[1]
    column = pa.Array.from_buffers(pa.binary(), 2, [valid, offsets, pa.py_buffer(b"??x")])
    hidden = pa.record_batch({"data": pa.array([b"a", b"b"], pa.binary()), "metadata": column})
    assert digest(hidden) == digest(batch([b"a", b"b"], [None, b"x"]))


def test_rows_are_counted() -> None:
    running = RowDigest()
    running.update(batch(DATA, METADATA))
    assert running.rows == 5
