from __future__ import annotations

import asyncio
import threading

import pyarrow as pa
import pytest

from tests.receiving.micro_batches import rows
from weirpool.errors import DiskFull
from weirpool.receiving.pushes import Pushes


async def test_pushes_during_a_write_share_the_next_one() -> None:
    sizes: list[int] = []
    loop, begun = asyncio.get_running_loop(), asyncio.Event()
    first = threading.Event()

    def append(batch: pa.RecordBatch) -> None:
        sizes.append(batch.num_rows)
        loop.call_soon_threadsafe(begun.set)
        assert first.wait(20)

    pushes = Pushes(append)
    tasks = [asyncio.create_task(pushes.push("c", rows([b"%d" % number]))) for number in range(50)]
    await begun.wait()
    tasks += [asyncio.create_task(pushes.push("c", rows([b"later"])))]
    await asyncio.sleep(0)
    assert pushes.waiting_bytes > 0
    first.set()
    await asyncio.gather(*tasks)
    assert sum(sizes) == 51 and len(sizes) <= 3
    assert pushes.waiting_bytes == 0


async def test_failure_is_told_to_those_it_concerns() -> None:
    failures = [DiskFull("full")]

    def append(batch: pa.RecordBatch) -> None:
        if failures:
            raise failures.pop()

    pushes = Pushes(append)
    with pytest.raises(DiskFull):
        await pushes.push("c", rows([b"a"]))
    await pushes.push("c", rows([b"b"]))
    await pushes.close()
