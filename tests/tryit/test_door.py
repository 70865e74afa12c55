"""The door: who gets the page, and who does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import weirpool
from weirpool import ConnectError
from weirpool.tryit.conversation import Place
from weirpool.tryit.door import MAX_PAGES, open_door
from weirpool.tryit.target import Target

URL = "rsocket+memory://door"


@asynccontextmanager
async def door(port: int = 0) -> AsyncIterator[str]:
    """Open a door to a server that is never reached; yield the page's URL."""
    target = Target(lambda hook: weirpool.connect(URL, on_connection=hook))
    async with open_door(target, Place(URL), port) as page:
        yield page


async def get(page: str, path: str, *headers: str, method: str = "GET") -> tuple[int, str, str]:
    """Send a request as it is written; return the status, the headers and the body of the answer."""
    port = urlsplit(page).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = [f"{method} {path} HTTP/1.1", *(headers or [f"Host: 127.0.0.1:{port}"]), "", ""]
    writer.write("\r\n".join(lines).encode())
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), head, body


def socket(page: str, origin: str | None = None) -> connect:
    """Return a connection to the page's WebSocket, as a page of `origin` opens it; by default as the page itself."""
    parts = urlsplit(page)
    return connect(f"ws://{parts.netloc}{parts.path}socket", origin=origin or f"http://{parts.netloc}", proxy=None)  # type: ignore[arg-type]


async def told(connection: ClientConnection) -> dict[str, object]:
    found: dict[str, object] = json.loads(await connection.recv())
    return found


@pytest.mark.parametrize("name", ["", "page.css", "page.js", "form.js", "items.js", "?x=1"])
async def test_serves_its_files_and_nothing_of_others(name: str) -> None:
    async with door() as page:
        status, head, body = await get(page, urlsplit(page).path + name)
    assert status == 200 and body
    assert "default-src 'none'; script-src 'self'" in head and "frame-ancestors 'none'" in head
    assert "http://" not in body and "https://" not in body


@pytest.mark.parametrize("path", ["../door.py", "page.html", "%2e%2e/door.py", "nothing", "socket/"])
async def test_serves_no_other_files(path: str) -> None:
    async with door() as page:
        assert (await get(page, urlsplit(page).path + path))[0] == 404


@pytest.mark.parametrize("path", ["/", "/page.js", "/wrong/", "/wrong/socket", "//"])
async def test_needs_the_token(path: str) -> None:
    async with door() as page:
        status, _, body = await get(page, path)
    assert status == 403 and "token" in body


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1.x:{port}"]
)
async def test_refuses_names_that_point_to_this_machine(host: str) -> None:
    async with door() as page:
        port = urlsplit(page).port
        assert (await get(page, urlsplit(page).path, f"Host: {host.format(port=port)}"))[0] == 403
        assert (await get(page, urlsplit(page).path, f"Host: localhost:{port}"))[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
async def test_pages_of_other_origins_cannot_talk(origin: str) -> None:
    async with door() as page:
        with pytest.raises(InvalidStatus, match="403"):
            async with socket(page, origin.format(port=urlsplit(page).port)):
                pass


async def test_talks_to_the_page() -> None:
    async with door() as page, socket(page) as connection:
        assert (await told(connection))["state"] == "connecting"
        await connection.send('{"op": "start", "id": "r1", "kind": "call", "route": "x"}')
        answer = await told(connection)
    assert answer["type"] == "end" and "there is no connection" in str(answer["message"])


async def test_pages_are_limited_and_their_places_are_given_back() -> None:
    async with door() as page:
        open_pages = [await socket(page) for _ in range(MAX_PAGES)]
        with pytest.raises(InvalidStatus, match="503"):
            await socket(page)
        await open_pages[0].close()
        async with socket(page) as connection:
            assert (await told(connection))["type"] == "target"
        for each in open_pages:
            await each.close()


async def test_large_messages_end_the_conversation() -> None:
    async with door() as page:
        connection = await socket(page)
        await told(connection)
        with pytest.raises(ConnectionClosed) as caught:
            await connection.send("x" * 5_000_000)
            await connection.recv()
        assert caught.value.rcvd is not None and caught.value.rcvd.code == 1009


async def test_a_port_in_use_is_an_error() -> None:
    async with door() as page:
        with pytest.raises(ConnectError, match="cannot listen on"):
            async with door(urlsplit(page).port or 0):
                pass


async def test_tokens_differ() -> None:
    async with door() as one, door() as other:
        assert urlsplit(one).path != urlsplit(other).path and len(urlsplit(one).path) > 30
