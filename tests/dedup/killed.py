"""A receiver that kills itself: ``python -m tests.dedup.killed POINT DATABASE``.

It stores rows in the same transaction as their record. At the named point it ends as after ``kill -9``: at a row,
before the transaction is committed, or after that and before the answer.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from typing import Any

import weirpool
from weirpool import Deduplicated, Items, Payload, Service
from weirpool.dedup.store import Store


def come_to(point: str) -> None:
    if sys.argv[1] == point:
        os.kill(os.getpid(), signal.SIGKILL)


class Fragile(Store):
    """Kills the process before or after a commit."""

    def commit(self, *arguments: Any) -> None:
        come_to("before")
        super().commit(*arguments)
        come_to("after")


async def main() -> None:
    service = Service()
    once = Deduplicated(Fragile(sys.argv[2]))

    @service.channel("rows")
    @once.atomic
    async def handle(request: Payload, items: Items, database: sqlite3.Connection) -> list[bytes]:
        database.execute("CREATE TABLE IF NOT EXISTS effects (text TEXT)")
        async for item in items:
            database.execute("INSERT INTO effects VALUES (?)", (item.data.decode(),))
            if item.data == b"0 50":
                come_to("row")
        return []

    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        print(server.urls[0], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
