"""The process of a server, or with ADDRESS of a client: ``python -m benchmarks.worker PEER LOOP [ADDRESS]``.

When it is ready it prints a JSON value, which for a server is its address. Then it runs the scenario in each line of
JSON on standard input, such as ``["calls", 1000, 64]``. For each it prints the elapsed seconds, and the CPU seconds of
the process so far, and what else the client returns. It ends at the end of its input.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any


async def lines() -> AsyncIterator[bytes]:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        yield line


def answer(value: object) -> None:
    print(json.dumps(value), flush=True)


async def obey(client: Any) -> None:
    async for line in lines():
        begun = time.perf_counter()
        scenario = json.loads(line)
        result = await getattr(client, scenario[0])(*scenario[1:]) if scenario else None
        answer({"seconds": time.perf_counter() - begun, "cpu": time.process_time()} | (result or {}))


async def main(name: str, tuned: bool, address: str | None) -> None:
    peer = import_module(f"benchmarks.peers.{name}")
    if address is None:
        async with peer.serving(tuned) as where:
            answer(where)
            await obey(None)
    else:
        async with peer.connected(address, tuned) as client:
            answer("connected")
            await obey(client)


if __name__ == "__main__":
    name, loop, *addresses = sys.argv[1:]
    if loop == "uvloop":
        import uvloop

        run = uvloop.run
    else:
        run = asyncio.run
    run(main(name, loop == "uvloop", addresses[0] if addresses else None))
