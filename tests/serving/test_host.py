"""A collector's server, and the files that lead to it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import weirpool
from tests.journal.logs import write
from weirpool import ConnectError, LocalError, Payload
from weirpool.serving.discovery import discovered
from weirpool.serving.host import Host, Listening, check

LOCAL = "rsocket+tcp://127.0.0.1:0"


async def announced(folder: Path, url: str | None) -> None:
    """Wait until a journal's file names this URL. A test that waits too long is canceled."""
    while True:
        found = await asyncio.to_thread(discovered, str(folder))
        if (None if found is None else found.url) == url:
            return
        await asyncio.sleep(0)


async def test_journals_are_served_and_announced(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(one, 11)
    write(two, 22)
    async with Host({"one": str(one)}, Listening(urls=(LOCAL,))) as host:
        [url] = host.urls
        assert host.url("one") == f"{url}?journal=one"
        await announced(one, f"{url}?journal=one")
        await host.replace({"two": str(two)})
        await announced(two, f"{url}?journal=two")
        await announced(one, None)
        async with weirpool.connect(url, setup=Payload(b'{"journal": "two"}')) as peer:
            assert b"22" in (await peer.call("weirpool.journal.list")).data
            with pytest.raises(ConnectError):
                await Host({}, Listening(urls=(url,))).__aenter__()
        assert host.journals.folders == {"two": str(two)}
    assert not (two / "_served.json").exists()


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (Listening(urls=()), "no address"),
        (Listening(urls=("river+tcp://127.0.0.1:0",)), "river carries values"),
        (Listening(urls=(LOCAL,), key="k"), "a key needs its certificate"),
        (Listening(urls=(LOCAL,), address="rsocket+tcp://:1"), "a host, a port and no options"),
        (Listening(urls=(LOCAL,), token=lambda: ""), "the token that clients must show is empty"),
    ],
)
def test_what_cannot_work_is_refused(where: Listening, why: str) -> None:
    with pytest.raises(LocalError, match=why):
        check(where)


async def test_what_is_not_safe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="a token in the variable WEIRPOOL_SERVE_TOKEN or client certificates"):
        await Host({"a": str(tmp_path)}, Listening(urls=("rsocket+tcp://0.0.0.0:0",))).__aenter__()
    assert await asyncio.to_thread(discovered, str(tmp_path)) is None
