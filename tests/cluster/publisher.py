"""Six feeds for as long as there is no file `finish`: ``weirpool serve tests/cluster/publisher.py:service URL...``.

They are one stream, whose request names the feed. Each request starts a run, whose items are numbered from 0.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from chaos.items import item

import weirpool
from weirpool import Payload, Service

FOLDER = Path(os.environ["LAB_FOLDER"])
TICK = 0.02
ITEMS = 5
"""Items in each tick."""

service = weirpool.audited(Service())
runs: Counter[str] = Counter()


@service.stream("lab.items")
async def items(request: Payload) -> AsyncIterator[bytes]:
    feed = bytes(request.data).decode().strip('"')
    run, made = runs[feed], 0
    runs[feed] += 1
    while not (FOLDER / "finish").exists():
        for number in range(made, made + ITEMS):
            yield item(run, number)
        made += ITEMS
        await asyncio.sleep(TICK)
    with (FOLDER / f"{feed}.ended").open("a") as file:
        file.write(f"{run} {made}\n")
