"""A client of the benchmarks on replit-river: ``bench.py ADDRESS``.

It answers the same requests as ``benchmarks/worker.py``. This runs in the environment of the package, without Weirpool.
"""

import asyncio
import json
import logging
import sys
import time
from datetime import timedelta

from replit_river.error_schema import RiverError
from replit_river.transport_options import TransportOptions
from replit_river.v2.client import Client

TEXT = {"text": "x" * 128}
TIMEOUT = timedelta(seconds=30)
OPTIONS = TransportOptions(heartbeat_ms=1000, heartbeats_until_dead=2)


def same(value):
    return value


async def calls(client, count, in_flight):
    async def caller(share):
        for _ in range(share):
            await client.send_rpc("bench", "echo", TEXT, same, same, RiverError.model_validate, TIMEOUT)

    await asyncio.gather(*(caller(count // in_flight) for _ in range(in_flight)))


async def main(address):
    async def place():
        return {"uri": address, "metadata": None}

    client = Client(place, "bench", "SERVER", OPTIONS)
    await client.ensure_connected()
    print(json.dumps("connected"), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        begun = time.perf_counter()
        scenario = json.loads(line)
        if scenario:
            await calls(client, *scenario[1:])
        print(json.dumps({"seconds": time.perf_counter() - begun, "cpu": time.process_time()}), flush=True)
    await client.close()


if __name__ == "__main__":
    logging.disable()
    asyncio.run(main(sys.argv[1].removeprefix("river+").partition("?")[0]))
