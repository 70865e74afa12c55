from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from inspect import iscoroutinefunction, signature
from pathlib import Path

import pytest

from penstock import UrlError, transports
from penstock.transports.base import Transport
from penstock.urls import TRANSPORTS
from tests.transports.recording import connected, listening


def test_every_transport_that_urls_may_name_has_its_module() -> None:
    assert sorted(transports.MODULES) == sorted(TRANSPORTS)


@pytest.mark.parametrize("name", sorted(set(transports.MODULES.values())))
@pytest.mark.parametrize("function", ["connect", "listen"])
def test_every_module_is_a_transport(name: str, function: str) -> None:
    found = getattr(import_module(f"penstock.transports.{name}"), function)
    assert iscoroutinefunction(found)
    assert [*signature(found).parameters] == [*signature(getattr(Transport, function)).parameters][1:]


def test_transports_are_imported_when_they_are_used() -> None:
    names = [f"penstock.transports.{name}" for name in transports.MODULES.values()]
    program = f"import sys, penstock.transports; sys.exit(any(name in sys.modules for name in {names}))"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize(("url", "package"), [("h2c://localhost:1", "h2"), ("quic://localhost:1", "aioquic")])
async def test_what_is_not_installed_is_told_with_what_installs_it(
    url: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("penstock.transports.http2", "penstock.transports.quic"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == package] or [package]:
        monkeypatch.setitem(sys.modules, name, None)
    extra = "quic" if package == "aioquic" else "http2"
    with pytest.raises(UrlError, match=rf"needs the package {package}.*; run: pip install 'penstock\[{extra}\]'"):
        await connected(f"rsocket+{url}")


@pytest.mark.parametrize("scheme", ["tcp", "unix", "memory", "h2c"])
async def test_the_url_says_which_transport_it_is(scheme: str, tmp_path: Path) -> None:
    place = {"tcp": "127.0.0.1:0", "unix": f"{tmp_path}/s", "memory": "place", "h2c": "127.0.0.1:0"}[scheme]
    async with listening(f"rsocket+{scheme}://{place}") as there:
        assert there.url.startswith(f"rsocket+{scheme}://")
        client = await connected(there.url)
        server = await there.next()
        client.link.write(b"hi")
        await server.has(b"hi")
        client.link.abort()
        await server.lost()
