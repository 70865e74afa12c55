"""The interop service on Penstock: prints ``LISTENING port`` and serves until it is killed."""

from __future__ import annotations

import asyncio

from examples.interop import service

import penstock


async def main() -> None:
    async with penstock.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        print(f"LISTENING {server.urls[0].rpartition(':')[2]}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
