"""A server in a process of its own, to be killed: ``python -m tests.chaos.serving URL FOLDER CALLS``.

It says where it listens, and serves until it is killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

from weirpool import Items, Payload, Service, Settings, serve
from weirpool.urls import fitting

TOTAL = 200_000
# No heartbeat is missed because this machine is slow.
PATIENT = Settings(heartbeat_interval=20.0, handshake_timeout=20.0, session_grace=60.0)


def make_service(calls: str) -> Service:
    """Return a service that notes in the file `calls` which calls were begun."""
    service = Service()
    notes = os.open(calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    @service.stream("demo.count")
    def count(request: Payload) -> Iterator[bytes]:
        return (b"%d" % number for number in range(int(request.data), TOTAL))

    @service.call("demo.note")
    def note(request: Payload) -> Payload:
        os.write(notes, request.data + b"\n")
        return request

    @service.channel("demo.echo")
    async def echo(request: Payload, items: Items) -> AsyncIterator[Payload]:
        yield request
        async for item in items:
            yield item

    return service


async def main(url: str, folder: str, calls: str) -> None:
    settings = fitting(replace(PATIENT, resume_store=folder), url, serving=True)
    async with serve(make_service(calls), url, settings=settings) as server:
        print(server.urls[0], flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
