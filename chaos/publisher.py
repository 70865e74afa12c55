"""A publisher that publishes each item once: ``python -m chaos.publisher LATE SOURCE FOLDER FIRST_RUN RATE``.

Each request starts a new run, whose items are numbered from 0. They exist only in the memory of this process and, if
the source is stored, in its resume store. They cannot be requested again. LATE is described in `chaos.lateness`.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow as pa

import weirpool
from weirpool import Payload, Service, Settings
from weirpool.urls import fitting

from .children import listen
from .items import item
from .lateness import late_main
from .sources import SOURCES, Source

ROUTE: Final = "chaos.items"
TICK: Final = 0.02
GRACE: Final = 45.0
"""Seconds that a session waits for a link: longer than any fault except a long outage."""
KEEPALIVE_LIFETIME: Final = 8.0
"""RSocket's keepalive timeout in seconds: less than a long pause."""
BURSTS: Final = (0, 0, 1, 1, 1, 1, 4)
"""Factors by which the number of items per tick varies."""
ITEMS: Final = pa.schema([("data", pa.binary()), ("metadata", pa.binary())])


class Publisher:
    """The runs of one process.

    Args:
        source: The source.
        folder: The folder of the whole run of chaos.
        first_run: The number of its first run.
        rate: Mean number of items per second.

    """

    def __init__(self, source: Source, folder: Path, first_run: int, rate: float) -> None:
        self.service = Service()
        self.service.stream(ROUTE)(self.items)
        self._runs = count(first_run)
        self._rng = random.Random(f"{source.name} {first_run}")
        self._rate = rate
        self._prefix = source.prefix
        self._finish = folder / "finish"
        self._begun = folder / f"{source.name}.begun"
        self._ended = folder / f"{source.name}.ended"

    async def items(self, request: Payload) -> AsyncIterator[bytes | pa.RecordBatch]:
        """Yield the items of one run, until the file `finish` exists."""
        run, made = next(self._runs), 0
        with self._begun.open("a") as file:
            file.write(f"{run}\n")
        while not self._finish.exists():
            wanted = round(self._rate * TICK * self._rng.choice(BURSTS))
            if self._rng.random() < 0.5:
                for number in range(made, made + wanted):
                    yield self._prefix + item(run, number)
            elif wanted:
                data = pa.array(
                    [self._prefix + item(run, number) for number in range(made, made + wanted)], pa.binary()
                )
                yield pa.record_batch([data, pa.nulls(wanted, pa.binary())], schema=ITEMS)
            made += wanted
            await asyncio.sleep(TICK)
        with self._ended.open("a") as file:
            file.write(f"{run} {made}\n")


async def main(name: str, folder: str, first_run: str, rate: str) -> None:
    """Serve until SIGTERM or SIGINT."""
    source = next(source for source in SOURCES if source.name == name)
    here = Path(folder)
    stored = str(here / f"{name}.sessions") if source.stored else ""
    settings = Settings(
        resume_timeout=GRACE, session_grace=GRACE, keepalive_lifetime=KEEPALIVE_LIFETIME, resume_store=stored
    )
    socket = here / f"{name}.sock"
    # A killed publisher leaves its socket.
    socket.unlink(missing_ok=True)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    publisher = Publisher(source, here, int(first_run), float(rate))
    url = source.url(f"unix://{socket}")
    async with weirpool.serve(publisher.service, url, settings=fitting(settings, url, serving=True)):
        await ended.wait()


if __name__ == "__main__":
    late, *arguments = sys.argv[1:]
    listen()
    weirpool.run(late_main(late, main(*arguments)))
