"""A client of 2018: ``client.py TRANSPORT HOST PORT CUT_PORT`` sends one request and prints one JSON object.

The library calls its protocol 0.2, but its frames have the layout of an earlier draft, which is called 0.1 here. Our
server does not support it. The checks are that the server sends nothing and closes the connection.
"""

import asyncio
import json
import logging
import sys

import rsocket

CLOSE_TIMEOUT = 5.0
"""Seconds within which the server must close the connection."""


class Overheard:
    """A reader that stores what it has read.

    Attributes:
        heard: All bytes received.
        over: Set when the other side has closed the connection.

    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.heard = b""
        self.over = asyncio.Event()
        self._reader = reader

    async def read(self, limit: int) -> bytes:
        try:
            data = await self._reader.read(limit)
        except ConnectionError:
            data = b""
        self.heard += data
        if not data:
            self.over.set()
        return data


async def checks(host: str, port: int) -> dict[str, str]:
    reader, writer = await asyncio.open_connection(host, port)
    overheard = Overheard(reader)
    client = rsocket.RSocket(overheard, writer, server=False)
    client.request_response(rsocket.Payload(b"hello", b"echo"))
    try:
        await asyncio.wait_for(overheard.over.wait(), CLOSE_TIMEOUT)
        closed = "ok"
    except TimeoutError:
        closed = f"the server did not close the connection within {CLOSE_TIMEOUT:.0f} s"
    await client.close()
    writer.close()
    silent = f"the server answered: {overheard.heard.hex()}" if overheard.heard else "ok"
    return {"draft-close": closed, "draft-silence": silent}


async def main() -> int:
    results = await checks(sys.argv[2], int(sys.argv[3]))
    print(json.dumps({"peer": "py-0.2.0", "role": "client", "checks": results}))
    return 0 if set(results.values()) == {"ok"} else 1


if __name__ == "__main__":
    # Its tasks may end with errors about the closed connection.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    sys.exit(asyncio.run(main()))
