from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import weirpool
from weirpool import ApplicationError, Invalid, LocalError, Metadata, Payload, Peer, Rejected, Simple
from weirpool.errors import DiskFull
from weirpool.journal import Journal
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import commit
from weirpool.receiving.log import ReceivedLog
from weirpool.receiving.receiver import Receiver


@asynccontextmanager
async def receiving(journal: Path, **options: Any) -> AsyncIterator[Peer]:
    """Receive into a journal, and connect."""
    receiver = Receiver(journal, {"delays": "late", "orders": "orders"}, fsync=False, **options)
    async with (
        receiver,
        weirpool.serve(receiver.service, "rsocket+tcp://127.0.0.1:0") as server,
        weirpool.connect(server.urls[0]) as peer,
    ):
        yield peer


def held(journal: Path, source: str) -> list[tuple[bytes, bytes | None]]:
    reader = Journal(journal).reader(source)
    batches = list(reader.read(0, reader.end))
    return [
        pair for batch in batches for pair in zip(batch["data"].to_pylist(), batch["metadata"].to_pylist(), strict=True)
    ]


async def staged(peer: Peer, query: str, batch: int, *data: bytes, route: str = "delays") -> dict[str, object]:
    request = json.dumps({"route": route, "query": query, "batch": batch}).encode()
    answer = await peer.upload("weirpool.stage", request, list(data))
    found = json.loads(answer.data)
    assert isinstance(found, dict)
    return found


async def committed(peer: Peer, query: str, batch: int, *stages: dict[str, object]) -> dict[str, object]:
    request = {"route": "delays", "query": query, "batch": batch, "stages": stages}
    found = json.loads((await peer.call("weirpool.commit", json.dumps(request).encode())).data)
    assert isinstance(found, dict)
    return found


async def test_rows_of_all_kinds_of_requests_are_appended(tmp_path: Path) -> None:
    async with receiving(tmp_path) as peer:
        items = [Payload(b"1", b"meta"), Payload(b"2")]
        assert json.loads((await peer.upload("delays", b"", items)).data) == {"rows": 2}
        async with peer.channel("delays", b"", [b"3"]) as answers:
            assert [answer.data async for answer in answers] == [b'{"rows":1}']
        assert (await peer.call("delays", b"4", metadata=b"own")).data == b""
        secret = Metadata("delays", auth=Simple("ada", "geheim"), entries=[("application/octet-stream", b"mine")])
        await peer.call("", b"5", metadata=secret.encode())
        await peer.fire("delays", b"6")
        await peer.call("delays", b"7")
        found = held(tmp_path, "late")
        assert sorted(found[:5], key=lambda row: row[0]) == [
            (b"1", b"meta"),
            (b"2", None),
            (b"3", None),
            (b"4", b"own"),
            (b"5", b"mine"),
        ]
        assert {data for data, _ in found[5:]} == {b"6", b"7"}
        assert held(tmp_path, "orders") == []


async def test_micro_batch_is_committed_once(tmp_path: Path) -> None:
    async with receiving(tmp_path) as peer:
        one, two = await staged(peer, "q", 0, b"1", b"2"), await staged(peer, "q", 0, b"3")
        assert held(tmp_path, "late") == []
        assert await committed(peer, "q", 0, two, one) == {"first": 0, "end": 3, "repeated": False}
        assert await committed(peer, "q", 0, two, one) == {"first": 0, "end": 3, "repeated": True}
        assert [data for data, _ in held(tmp_path, "late")] == [b"3", b"1", b"2"]


async def test_dropped_stage_cannot_be_committed(tmp_path: Path) -> None:
    async with receiving(tmp_path) as peer:
        one = await staged(peer, "q", 0, b"1")
        request = {"route": "delays", "query": "q", "batch": 0, "stages": [one]}
        await peer.call("weirpool.abort", json.dumps(request).encode())
        with pytest.raises(ApplicationError, match="run the micro-batch again"):
            await committed(peer, "q", 0, one)


async def test_canceled_stage_leaves_nothing(tmp_path: Path) -> None:
    async with receiving(tmp_path) as peer:

        async def broken() -> AsyncIterator[bytes]:
            yield b"1"
            raise ApplicationError(0x301, "no more")

        with pytest.raises(ApplicationError):
            await peer.upload("weirpool.stage", b'{"route":"delays","query":"q","batch":0}', broken())
        await peer.call("delays", b"")
        async with asyncio.timeout(10):
            while list((log_folder(tmp_path, "late") / "_stages").iterdir()):
                await peer.call("delays", b"")


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (b"junk", "not a request of Weirpool's sink"),
        (b'{"route":"other","query":"q","batch":0}', "the routes are delays, orders"),
        (b'{"route":"delays","query":"../../etc","batch":0}', "cannot name a query"),
        (b'{"route":"delays","query":"q","batch":-1}', "`int` >= 0"),
    ],
)
async def test_invalid_stage_is_explained(request_: bytes, why: str, tmp_path: Path) -> None:
    async with receiving(tmp_path) as peer:
        with pytest.raises(Invalid, match=why):
            await peer.upload("weirpool.stage", request_, [b"1"])


async def test_disk_errors_are_told_without_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with receiving(tmp_path) as peer:

        def full(self: ReceivedLog, *arguments: object, **named: object) -> None:
            raise DiskFull("/secret/path is full")

        monkeypatch.setattr(ReceivedLog, "commit", full)
        with pytest.raises(Rejected, match="disk is full; try again") as caught:
            await committed(peer, "q", 0)
        assert "secret" not in str(caught.value)


async def test_rows_wait_while_the_budget_is_used_up(tmp_path: Path) -> None:
    async with receiving(tmp_path, budget_bytes=10_000) as peer:
        await peer.call("delays", bytes(20_000))
        late = asyncio.ensure_future(peer.call("delays", b"later"))
        await peer.call("orders", b"")
        assert not late.done()
        commit(log_folder(tmp_path, "late"), f"{Journal(tmp_path).reader('late').uuid}.r", 1)
        await late
        assert len(held(tmp_path, "late")) == 2


async def test_a_receiver_without_routes_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="at least one route"):
        Receiver(tmp_path, [])
    with pytest.raises(LocalError, match="cannot name a source"):
        Receiver(tmp_path, ["a/b"])


async def test_fired_rows_are_dropped_and_counted_if_there_is_no_room(tmp_path: Path) -> None:
    receiver = Receiver(tmp_path, ["a"], fsync=False, budget_bytes=10_000)
    async with receiver, weirpool.serve(receiver.service, "rsocket+memory://fired") as server:
        async with weirpool.connect(server.urls[0]) as peer:
            await peer.call("a", bytes(20_000))
            for _ in range(3):
                await peer.fire("a", b"lost")
            async with asyncio.timeout(10):
                while receiver.dropped < 3:
                    await peer.upload("a", b"", [])
    assert len(held(tmp_path, "a")) == 1
