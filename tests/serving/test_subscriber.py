"""Reads of one subscriber: in any pieces, with rests and losses between, the items are those of the log."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from tests.journal.logs import SOURCE, write
from weirpool import ApplicationError, DataLost, Payload
from weirpool.journal import Journal, JournalReader
from weirpool.serving import subscriber
from weirpool.serving.messages import LogState
from weirpool.serving.readers import Readers
from weirpool.serving.subscriber import Subscriber, View
from weirpool.serving.subscriptions import Subscription

ROWS = 100


async def at_once(work: Callable[[], Any]) -> Any:
    return work()


def reading(path: Path, asked: Subscription, *changes: list[LogState], last: int | None = ROWS) -> Subscriber:
    """Return the reading of a subscriber that starts at `asked.start` and is told of these changes."""
    uuid = JournalReader(path, SOURCE).uuid

    async def states() -> AsyncGenerator[list[LogState], None]:
        yield []
        for change in changes:
            yield change

    assert isinstance(asked.start, int)
    view = View(SOURCE, uuid, asked.start, JournalReader(path, SOURCE).end, last)
    readers = Readers(Journal(path).reader)
    return Subscriber(asked, states(), lambda _: view, readers, at_once, annotated=False)


async def items_of(found: Subscriber, chance: random.Random) -> list[bytes]:
    """Return the data of all items, taken in any pieces, with rests between."""
    data: list[bytes] = []
    while await found.more():
        await found.fill()
        if chance.random() < 0.3:
            await found.rest()
            assert not found.held
            continue
        chunk = found.take(chance.randint(1, 40))
        if chunk is not None:
            whole = isinstance(chunk.items, pa.RecordBatch)
            data += chunk.items.column("data").to_pylist() if whole else [chunk.items.data]
    await found.close()
    return data


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("small", [0, 1 << 18])
async def test_items_are_those_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, small: int
) -> None:
    monkeypatch.setattr(subscriber, "SMALL_BYTES", small)
    monkeypatch.setattr(subscriber, "CHUNK_ROWS", 17)
    write(tmp_path, 7, 13, 30, 50)
    found = await items_of(reading(tmp_path, Subscription(start=5)), random.Random(seed))
    assert [int(data) for data in found] == list(range(5, ROWS))


async def test_a_chunk_is_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriber, "CHUNK_BYTES", 500)
    write(tmp_path, ROWS)
    found = reading(tmp_path, Subscription(start=0))
    assert await found.more()
    await found.fill()
    assert 0 < found.held <= 500


async def test_objects_have_their_positions(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    found = await items_of(reading(tmp_path, Subscription(start=90, form="json")), random.Random(1))
    assert [msgspec.json.decode(data)["position"] for data in found] == list(range(90, ROWS))


@pytest.mark.parametrize(("loss", "form"), [("fail", "items"), ("skip", "items"), ("skip", "json")])
async def test_rows_that_are_gone_are_told_as_it_was_asked(tmp_path: Path, loss: Any, form: Any) -> None:
    write(tmp_path, 50, 50, segment_bytes=1)
    Journal(tmp_path).delete(SOURCE, 50)
    found = reading(tmp_path, Subscription(start=10, loss=loss, form=form))
    if loss == "fail":
        with pytest.raises(DataLost, match="positions 10 to 49 are gone; start at 50"):
            await items_of(found, random.Random(1))
        return
    items = await items_of(found, random.Random(1))
    if form == "json":
        assert msgspec.json.decode(items.pop(0))["gap"]["lost"] == [10, 50]
    assert len(items) == 50


async def test_new_rows_are_read_when_they_are_told(tmp_path: Path) -> None:
    write(tmp_path, 10)
    uuid = JournalReader(tmp_path, SOURCE).uuid
    more = [[LogState("other", "u", 0, 5)], [LogState(SOURCE, uuid, 0, ROWS)]]
    found = reading(tmp_path, Subscription(start=0), *more)
    write(tmp_path, 90)
    assert len(await items_of(found, random.Random(1))) == ROWS


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (LogState(SOURCE, "another"), "JournalMismatch: the log was removed, and collected again"),
        (LogState(SOURCE, "", trouble="JournalCorrupt: /srv/x"), "JournalCorrupt: the log is not readable any more"),
    ],
)
async def test_a_log_that_is_not_the_same_ends_the_stream(tmp_path: Path, state: LogState, text: str) -> None:
    write(tmp_path, 10)
    with pytest.raises(ApplicationError, match=text):
        await items_of(reading(tmp_path, Subscription(start=0), [state]), random.Random(1))


async def test_a_payload_is_taken_whole(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    found = reading(tmp_path, Subscription(start=0, form="arrow"))
    assert await found.more()
    await found.fill()
    chunk = found.take(1)
    assert chunk is not None and isinstance(chunk.items, Payload) and chunk.count == 1
    with pa.ipc.open_stream(chunk.items.data) as stream:
        assert stream.read_all().num_rows == ROWS
