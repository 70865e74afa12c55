"""River by `serve` and `connect`, over every transport that carries it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import ApplicationError
from tests.river.serving import make_service

TRANSPORTS = ("memory", "tcp", "unix", "ws")


def url_of(transport: str, folder: Path) -> str:
    place = {"unix": str(folder / "s"), "memory": f"river-{folder.name}"}.get(transport, "127.0.0.1:0/river")
    return f"river+{transport}://{place}".replace(":0/river", ":0" if transport == "tcp" else ":0/river")


@asynccontextmanager
async def world(url: str, seen: list[object] | None = None, **options: Any) -> AsyncIterator[tuple[Any, Any]]:
    async with penstock.serve(make_service([] if seen is None else seen), url) as server:
        async with penstock.connect(server.urls[0], **options) as peer:
            yield server, peer


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_every_kind(transport: str, tmp_path: Path) -> None:
    async with world(url_of(transport, tmp_path), confirm=True) as (_, peer):
        assert (await peer.call("demo.add", b'{"a": 1, "b": 2}')).data == b'{"sum":3}'
        async with peer.stream("demo.count", b'{"upto": 1000}') as items:
            assert [item.data async for item in items] == [b'{"i":%d}' % i for i in range(1000)]
        assert (await peer.upload("demo.sum", b'{"start":10}', [b'{"n":1}', b'{"n":2}'])).data == b'{"total":13}'
        sent = [b'{"msg":"a"}', b'{"msg":"b"}']
        async with peer.channel("demo.echo", b'{"prefix":">"}', sent) as items:
            assert [item.data async for item in items] == [b'{"response":">a"}', b'{"response":">b"}']
        with pytest.raises(ApplicationError) as failed:
            await peer.call("demo.add", b'{"a":-1,"b":2}')
        assert (failed.value.code, failed.value.message, failed.value.data) == (
            "NEGATIVE",
            "a is negative",
            b'{"a":-1}',
        )
        with pytest.raises(ApplicationError) as failed:
            await peer.call("demo.boom")
        assert failed.value.code == "UNCAUGHT_ERROR" and "secret" not in failed.value.message
        with pytest.raises(penstock.Invalid, match=r"demo\.nope"):
            await peer.call("demo.nope")
        assert peer.outstanding == 0
