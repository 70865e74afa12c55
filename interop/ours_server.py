"""The interop service on Weirpool: ``python -m interop.ours_server TRANSPORT [--lease]``.

It prints its address, as ``weirpool serve`` does, and serves until it is killed. With ``--lease`` it grants leases, as
described in ``interop/README.md``. If TRANSPORT is ``river-json`` or ``river-msgpack``, it speaks River over WebSocket,
also to clients of v1.1.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import replace

from examples.interop import service

import weirpool
from weirpool import Settings
from weirpool.urls import fitting

from .harness import LEASE_INTERVAL, LEASE_REQUESTS


def settings_for(leases: bool) -> Settings:
    settings = Settings(river_v1_1=True)
    if not leases:
        return settings
    return replace(settings, lease=weirpool.IntervalLease(LEASE_REQUESTS, LEASE_INTERVAL))


def url_of(transport: str) -> str:
    protocol, _, codec = transport.partition("-")
    if protocol == "river":
        return f"river+ws://127.0.0.1:0/?codec={codec}"
    return f"rsocket+{transport}://127.0.0.1:0/"


async def main(transport: str, *options: str) -> None:
    url = url_of(transport)
    settings = fitting(settings_for("--lease" in options), url, serving=True)
    async with weirpool.serve(service, url, settings=settings) as server:
        print(f"listening on {server.urls[0]}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    asyncio.run(main(*sys.argv[1:]))
