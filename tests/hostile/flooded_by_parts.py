"""A client whose publisher sends parts of elements but never a last one: print its error and its memory use.

Run it in a process of its own, with the name of a limit and its bytes; the answer is one object of JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys

import weirpool
from weirpool import Settings, _build

PART = 1 << 20
ELEMENTS = 48
PARTS_OF_EACH = 10
"""Together 480 MiB: within the demand, and each element within max_payload_bytes."""


async def publisher(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x02\x00\x00")  # serverHello
    await reader.read(100)  # clientHello, subscribe
    writer.write(b"\x06\x01\x00")  # subscribed
    data = bytes(PART)
    try:
        for part in range(ELEMENTS * PARTS_OF_EACH):
            writer.write(b"\x0b\x01" + bytes([part // PARTS_OF_EACH]) + b"\x80\x80\x40")
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()


def most_held() -> int:
    """Return the maximum memory of this process, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


async def main(limit: str, count: int) -> None:
    server = await asyncio.start_server(publisher, "127.0.0.1", 0)
    url = f"reactive-streams+tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    before = most_held()
    ended = ""
    async with weirpool.connect(url, settings=Settings(**{limit: count})) as peer:
        try:
            async with peer.stream("x") as items:
                async for _ in items:
                    pass
        except weirpool.WeirpoolError as error:
            ended = f"{type(error).__name__}: {error}"
    server.close()
    print(json.dumps({"ended": ended, "grown": most_held() - before, "accelerated": _build.ACCELERATED}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
