from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from weirpool import Invalid, Payload, Rejected
from weirpool.dedup.handled import Handled
from weirpool.dedup.recorded import Recorded
from weirpool.dedup.store import Store


def row(batch: int, index: int, partition: int = 0) -> Payload:
    return Payload(b"", b'{"query":"q","batch":%d,"partition":%d,"index":%d}' % (batch, partition, index))


@asynccontextmanager
async def request(store: Store, *, by_data: bool = False) -> AsyncIterator[Recorded]:
    async with AsyncExitStack() as stack:
        yield Recorded(Handled(store), (lambda item: item.data.decode()) if by_data else None, stack, None)


async def is_new(recorded: Recorded, *items: Payload) -> list[bool]:
    return [await recorded.is_new(item, is_request=False) for item in items]


async def test_items_are_new_until_they_are_recorded(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    rows = [row(0, 0), row(0, 1), row(0, 1)]
    async with request(store) as recorded:
        assert await is_new(recorded, *rows) == [True, True, False]
    async with request(store) as recorded:
        assert await is_new(recorded, *rows) == [True, True, False]
        await recorded.finish()
    async with request(store) as recorded:
        assert await is_new(recorded, *rows, row(0, 2), row(1, 0), row(0, 3)) == [False] * 3 + [True, True, False]
    store.close()


async def test_item_is_not_recorded_by_another_request_of_its_task(tmp_path: Path) -> None:
    # Its own handler may fail after the other one has ended, and then nobody would handle it again.
    store = Store(tmp_path / "db")
    handled = Handled(store)
    async with AsyncExitStack() as one, AsyncExitStack() as two:
        failing, sound = (Recorded(handled, None, stack, None) for stack in (one, two))
        assert await failing.is_new(row(0, 0), is_request=True)
        assert await sound.is_new(row(0, 1), is_request=True)
        await sound.finish()
    async with AsyncExitStack() as stack:
        later = Recorded(handled, None, stack, None)
        assert await is_new(later, row(0, 0), row(0, 1)) == [True, False]
    store.close()


async def test_item_of_a_later_micro_batch_does_not_record_those_before_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    handled = Handled(store)
    async with AsyncExitStack() as one, AsyncExitStack() as two:
        failing, sound = (Recorded(handled, None, stack, None) for stack in (one, two))
        assert await failing.is_new(row(1, 0), is_request=True)
        assert await sound.is_new(row(0, 5), is_request=True)
        await sound.finish()
    async with AsyncExitStack() as stack:
        later = Recorded(handled, None, stack, None)
        assert await is_new(later, row(0, 5), row(1, 0)) == [False, True]
    store.close()


async def test_rows_of_two_tasks_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    async with request(store) as recorded:
        with pytest.raises(Invalid, match="rows of one task"):
            await is_new(recorded, row(0, 0, 0), row(0, 0, 1))
    store.close()


async def test_items_may_have_keys_of_the_application(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    items = [Payload(b"a"), Payload(b"b"), Payload(b"a")]
    for expected in ([True, True, False], [False] * 3):
        async with request(store, by_data=True) as recorded:
            assert await is_new(recorded, *items) == expected
            await recorded.finish()
    store.close()


async def test_key_that_is_recorded_while_it_is_looked_up_is_not_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "db")
    handled = Handled(store)
    looked, go = threading.Event(), threading.Event()
    real = store.has

    def has(key: str) -> bool:
        found = real(key)
        if looked.is_set():
            # The second request has its answer, and the first one goes on.
            go.wait(10)
        return found

    def recorded(stack: AsyncExitStack) -> Recorded:
        return Recorded(handled, lambda item: item.data.decode(), stack, None)

    monkeypatch.setattr(store, "has", has)
    async with AsyncExitStack() as one, AsyncExitStack() as two:
        first, second = recorded(one), recorded(two)
        assert await first.is_new(Payload(b"k"), is_request=False)
        looked.set()
        late = asyncio.create_task(second.is_new(Payload(b"k"), is_request=False))
        await asyncio.sleep(0)
        await first.finish()
        await one.aclose()
        go.set()
        try:
            assert not await late
        except Rejected:
            pass
    store.close()


@pytest.mark.parametrize("key", ["x" * 513, "a\0b", "\ud800"])
async def test_key_that_a_database_cannot_store_is_refused(tmp_path: Path, key: str) -> None:
    store = Store(tmp_path / "db")
    async with AsyncExitStack() as stack:
        recorded = Recorded(Handled(store), lambda item: key, stack, None)
        with pytest.raises(Invalid, match="at most 512 characters"):
            await recorded.is_new(Payload(b""), is_request=False)
    store.close()
