"""A server that others replace: ``python -m tests.rolling.server URL...``.

It prints a line of JSON when it listens, and another when it has closed. SIGTERM closes it. SIGUSR2 starts a successor
that takes over its sockets.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator

import weirpool
from weirpool import Payload, Service

ITEMS = 10


class Counting:
    """A service that counts the requests whose handler has started."""

    def __init__(self) -> None:
        self.started: Counter[str] = Counter()
        self.service = Service()
        self.service.call("one.call")(self.answer)
        self.service.stream("one.stream")(self.items)

    async def answer(self, request: Payload) -> Payload:
        self.started["call"] += 1
        await asyncio.sleep(0)
        return request

    async def items(self, request: Payload) -> AsyncIterator[Payload]:
        self.started["stream"] += 1
        for _ in range(ITEMS):
            await asyncio.sleep(0)
            yield request


def tell(**facts: object) -> None:
    print(json.dumps({"pid": os.getpid(), **facts}), flush=True)


def start_successor(server: weirpool.Server) -> None:
    urls, descriptors = server.hand_over()
    command = [sys.executable, "-m", "tests.rolling.server", *urls]
    # Nobody waits for it here: it outlives this process.
    subprocess.Popen(command, pass_fds=descriptors).returncode = 0


async def main(urls: list[str]) -> None:
    counting = Counting()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    async with weirpool.serve(counting.service, *urls) as server:
        loop.add_signal_handler(signal.SIGUSR2, start_successor, server)
        tell(urls=server.urls)
        await stopped.wait()
    tell(started=counting.started)


if __name__ == "__main__":
    weirpool.run(main(sys.argv[1:]))
