from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from inspect import iscoroutinefunction, signature
from pathlib import Path

import pytest

from penstock import transports
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


@pytest.mark.parametrize("scheme", ["tcp", "unix", "memory"])
async def test_the_url_says_which_transport_it_is(scheme: str, tmp_path: Path) -> None:
    place = {"tcp": "127.0.0.1:0", "unix": f"{tmp_path}/s", "memory": "place"}[scheme]
    async with listening(f"rsocket+{scheme}://{place}") as there:
        assert there.url.startswith(f"rsocket+{scheme}://")
        client = await connected(there.url)
        server = await there.next()
        client.link.write(b"hi")
        await server.has(b"hi")
        client.link.abort()
        await server.lost()
