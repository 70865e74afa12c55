from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.audit import digest as digest_module
from weirpool.audit.digest import BLOCK_ITEMS, Digests, digest_of

Items = list[tuple[bytes, bytes | None]]

ITEMS = st.lists(st.tuples(st.binary(max_size=5), st.none() | st.binary(max_size=3)), max_size=40)


def columns(items: Items) -> tuple[pa.Array, pa.Array]:
    return pa.array([data for data, _ in items], pa.binary()), pa.array([each for _, each in items], pa.binary())


def numbered(count: int) -> Items:
    return [(b"%d" % number, None if number % 3 else b"m%d" % number) for number in range(count)]


@given(items=ITEMS, cuts=st.lists(st.integers(0, 40), max_size=5))
def test_batches_do_not_matter(items: Items, cuts: list[int]) -> None:
    whole, parts = Digests(), Digests()
    data, metadata = columns(items)
    whole.add(data, metadata)
    places = sorted({0, len(items), *(min(cut, len(items)) for cut in cuts)})
    for start, stop in pairwise(places):
        parts.add(data.slice(start, stop - start), metadata.slice(start, stop - start))
    assert (parts.count, parts.rest) == (whole.count, whole.rest)
    assert digest_of(data, metadata) == whole.rest


@given(one=ITEMS, two=ITEMS)
def test_other_items_have_another_digest(one: Items, two: Items) -> None:
    assert (digest_of(*columns(one)) == digest_of(*columns(two))) == (one == two)


def test_blocks_are_complete() -> None:
    digests = Digests()
    items = numbered(2 * BLOCK_ITEMS + 5)
    for start in range(0, len(items), 1_000):
        digests.add(*columns(items[start : start + 1_000]))
    assert digests.count == len(items)
    assert digests.blocks == [
        digest_of(*columns(items[:BLOCK_ITEMS])),
        digest_of(*columns(items[BLOCK_ITEMS : 2 * BLOCK_ITEMS])),
    ]
    assert digests.rest == digest_of(*columns(items[-5:]))


def test_old_blocks_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_module, "BLOCK_ITEMS", 2)
    monkeypatch.setattr(digest_module, "KEPT_BLOCKS", 3)
    digests = Digests()
    digests.add(*columns(numbered(11)))
    assert (digests.count, digests.first, len(digests.blocks)) == (11, 2, 3)
    assert digests.blocks[0] == digest_of(*columns(numbered(6)[4:]))


def test_chunks_do_not_matter() -> None:
    data, metadata = columns(numbered(10))
    chunked = pa.chunked_array([data.slice(0, 3), data.slice(3)])
    assert digest_of(chunked, pa.chunked_array([metadata])) == digest_of(data, metadata)
