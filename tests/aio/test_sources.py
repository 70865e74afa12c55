"""What a sending half takes items from."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

from weirpool import LocalError, Payload, PayloadRun
from weirpool.aio.sources import check_source, many_of


async def numbers() -> AsyncIterator[bytes]:
    yield b"1"


async def later() -> list[bytes]:
    return [b"1"]


def refusal(source: object) -> LocalError | None:
    try:
        check_source(source)
    except LocalError as error:
        return error
    return None


@pytest.mark.parametrize("source", [[b"1"], (), iter([b"1"]), {b"1": 1}], ids=["list", "tuple", "iterator", "dict"])
def test_an_iterable_is_a_source(source: object) -> None:
    assert refusal(source) is None


async def test_an_async_iterable_and_an_awaitable_are_sources() -> None:
    source, awaitable = numbers(), later()
    assert refusal(source) is None
    assert refusal(awaitable) is None
    await anext(source)
    await awaitable


@pytest.mark.parametrize("source", [None, 1, b"1", "1", Payload(b"1"), PayloadRun.of((Payload(b"1"),))])
def test_a_single_item_is_no_source(source: object) -> None:
    assert f"async iterable, not {type(source).__name__}" in str(refusal(source))


def test_a_run_and_a_record_batch_are_many_items() -> None:
    run = PayloadRun.of((Payload(b"1"), Payload(b"2")))
    assert many_of(run) is run
    many = many_of(pa.record_batch({"data": pa.array([b"1", b"2", b"3"])}))
    assert many is not None
    assert len(many) == 3


@pytest.mark.parametrize("item", [b"1", Payload(b"1"), 1])
def test_anything_else_is_one_item(item: object) -> None:
    assert many_of(item) is None
