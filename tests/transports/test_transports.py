from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from importlib import import_module
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import Any

import pytest

from tests.transports.recording import connected, listening
from tests.waiting import turns
from weirpool import LocalError, Settings, transports
from weirpool.transports import tcp
from weirpool.transports.base import Transport
from weirpool.urls import TRANSPORTS, parse_url


def test_every_transport_that_urls_may_name_has_its_module() -> None:
    assert sorted(transports.MODULES) == sorted(TRANSPORTS)


@pytest.mark.parametrize("name", sorted(set(transports.MODULES.values())))
@pytest.mark.parametrize("function", ["connect", "listen"])
def test_every_module_is_a_transport(name: str, function: str) -> None:
    found = getattr(import_module(f"weirpool.transports.{name}"), function)
    assert iscoroutinefunction(found)
    assert [*signature(found).parameters] == [*signature(getattr(Transport, function)).parameters][1:]


def test_transports_are_imported_when_they_are_used() -> None:
    names = [f"weirpool.transports.{name}" for name in transports.MODULES.values()]
    program = f"import sys, weirpool.transports; sys.exit(any(name in sys.modules for name in {names}))"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [
        ("ws://localhost:1", "websockets", "websocket"),
        ("h2c://localhost:1", "h2", "http2"),
        ("quic://localhost:1", "aioquic", "quic"),
    ],
)
async def test_a_package_that_is_missing_is_named_with_its_extra(
    url: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = tuple(f"weirpool.transports.{name}" for name in ("websocket", "http2", "quic"))
    for name in list(sys.modules):
        if name.partition(".")[0] == package or name.startswith(ours):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LocalError, match=rf"needs the package {package}; run: pip install 'weirpool\[{extra}\]'"):
        await connected(f"rsocket+{url}")


async def test_unix_sockets_are_refused_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("socket.AF_UNIX")
    with pytest.raises(LocalError, match=r"no Unix sockets on this system; use TCP"):
        await connected("rsocket+unix:///tmp/socket")


async def test_other_missing_modules_raise_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(transports.MODULES, "tcp", "nowhere")
    with pytest.raises(ModuleNotFoundError):
        await transports.connect(parse_url("rsocket+tcp://h:1"), transports.Discard(), Settings())


@pytest.mark.parametrize("scheme", ["tcp", "unix", "memory", "h2c"])
async def test_url_selects_the_transport(scheme: str, tmp_path: Path) -> None:
    place = {"tcp": "127.0.0.1:0", "unix": f"{tmp_path}/s", "memory": "place", "h2c": "127.0.0.1:0"}[scheme]
    async with listening(f"rsocket+{scheme}://{place}") as there:
        assert there.url.startswith(f"rsocket+{scheme}://")
        client = await connected(there.url)
        server = await there.next()
        client.link.write(b"hi")
        await server.has(b"hi")
        client.link.abort()
        await server.lost()


@pytest.mark.parametrize("url", ["tcp://h:1", "tls://h:1", "unix:///h", "memory://h", "quic://h:1"])
async def test_headers_are_refused_where_nothing_carries_them(url: str) -> None:
    message = "Settings.headers works only with h2, h2c, ws and wss"
    with pytest.raises(LocalError, match=message) as error:
        await connected(f"rsocket+{url}", Settings(headers=(("Authorization", "secret"),)))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("url", ["ws://127.0.0.1:1/feed", "h2c://127.0.0.1:1/feed"])
async def test_link_lost_before_its_handshake_is_reported_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A connect that is canceled in the turn in which its socket is connected: the link is made, and lost at once.
    reported = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def lose(place: Any, receiver: Any, *_: Any) -> None:
        async with listening() as there:
            monkeypatch.undo()
            await tcp.connect(parse_url(there.url), receiver, Settings(), None)
            receiver.link_lost(None)
            raise asyncio.CancelledError

    monkeypatch.setattr(tcp, "connect", lose)
    with pytest.raises(asyncio.CancelledError):
        await connected(f"rsocket+{url}")
    await turns(5)
    gc.collect()
    assert reported == []
