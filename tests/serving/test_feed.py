"""A journal as a route of a service."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import weirpool
from tests.journal.logs import SOURCE, append, write
from weirpool import ApplicationError, Invalid, LocalError, Peer, Service
from weirpool.journal import JournalReader, JournalWriter
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.gaps import Gap
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import trim
from weirpool.serving.feed import JournalFeed
from weirpool.serving.subscriptions import Subscription

PROTOCOLS = ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams", "river"]


@asynccontextmanager
async def subscribed(path: Path, protocol: str = "rsocket", source: str | None = None) -> AsyncIterator[Peer]:
    """Connect to a service that offers a journal as the route `logs.all`."""
    service = Service()
    service.journal("logs.all", path, source=source)
    async with (
        weirpool.serve(service, f"{protocol}+memory://{path.name}", settings=weirpool.Settings(close_grace=0.01)),
        weirpool.connect(f"{protocol}+memory://{path.name}") as peer,
    ):
        yield peer


async def numbers(peer: Peer, request: bytes | str, count: int | None = None, credit: int = 256) -> list[int]:
    """Return the data of the first items, or of all."""
    found: list[int] = []
    async with peer.stream("logs.all", request, credit=credit) as items:
        async for item in items:
            found.append(int(item.data))
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_history_and_live_items_join_without_a_seam(tmp_path: Path, protocol: str) -> None:
    write(tmp_path, 30, 5)
    request = '"earliest"' if protocol == "river" else "earliest"
    async with subscribed(tmp_path, protocol) as peer:
        reading = asyncio.create_task(numbers(peer, request, 200))
        with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
            for _ in range(33):
                append(writer, 5)
                await asyncio.sleep(0)
            assert await reading == list(range(200))


async def test_it_starts_and_ends_where_the_client_asks(tmp_path: Path) -> None:
    write(tmp_path, 30, 5)
    async with subscribed(tmp_path) as peer:
        assert await numbers(peer, b"33", 2) == [33, 34]
        assert await numbers(peer, b'{"from": 28, "to": 31}') == [28, 29, 30]
        assert await numbers(peer, b'{"from": "earliest", "to": "now"}') == list(range(35))
        assert await numbers(peer, b'{"from": "2000-01-01T00:00:00Z", "to": 3}') == [0, 1, 2]
        assert await numbers(peer, b'{"from": "new", "to": "now"}') == []
        for request in (b"someday", b'{"from": 1, "source": "absent"}', b'{"from": -1}', b'{"from": 1, "to": -1}'):
            with pytest.raises(Invalid, match=r"not a request|name a source"):
                await numbers(peer, request)


async def test_it_does_not_wait_for_a_position_beyond_the_end(tmp_path: Path) -> None:
    write(tmp_path, 30, 5)
    async with subscribed(tmp_path) as peer:
        assert await numbers(peer, b'{"from": 35, "to": "now"}') == []
        for position in (36, 10**6, 2**62, 2**63, 10**30):
            with pytest.raises(Invalid, match=f"no position {position} to start at: .*ends at 35"):
                await numbers(peer, b'{"from": %d}' % position)


async def test_new_items_alone(tmp_path: Path) -> None:
    write(tmp_path, 30)
    async with subscribed(tmp_path, source=SOURCE) as peer, peer.stream("logs.all") as items:
        coming = asyncio.ensure_future(anext(aiter(items)))
        with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
            while not coming.done():
                append(writer, 1)
                await asyncio.sleep(0.005)
        assert int((await coming).data) >= 30


async def test_a_slow_client_holds_up_nobody(tmp_path: Path) -> None:
    write(tmp_path, *[5_000] * 20)
    async with subscribed(tmp_path) as peer, peer.stream("logs.all", b"earliest", credit=1) as slow:
        assert int((await anext(aiter(slow))).data) == 0
        rows = 0
        async with peer.stream("logs.all", b'{"from": 0, "to": 100000}') as fast:
            async for batch in fast.batches():
                rows += batch.num_rows
        assert rows == 100_000
        with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
            append(writer, 1)
        assert int((await anext(aiter(slow))).data) == 1


async def test_rows_that_are_gone_end_it_or_are_told(tmp_path: Path) -> None:
    folder = write(tmp_path, 10, 10, segment_bytes=1)
    trim(folder, 10, retain_bytes=0)
    with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
        writer.append_gap("the publisher was replaced")
        append(writer, 2)
    async with subscribed(tmp_path) as peer:
        with pytest.raises(ApplicationError, match="DataLost: positions 5 to 9 are gone; start at 10") as lost:
            await numbers(peer, b"5")
        assert str(tmp_path) not in str(lost.value)
        request = b'{"from": 5, "to": 22, "loss": "skip", "metadata": "position"}'
        found = []
        async with peer.stream("logs.all", request) as items:
            async for item in items:
                told = json.loads(item.metadata or b"")
                found.append(told["gap"]["lost"] or told["gap"]["reason"] if "gap" in told else told["position"])
        assert found == [[5, 10], *range(10, 20), "the publisher was replaced", 20, 21]
        # Without a place for gaps, there is no item for them.
        assert await numbers(peer, b'{"from": 5, "to": 22, "loss": "skip"}') == list(range(10, 22))


async def test_rows_that_a_query_has_skipped_are_no_gap_for_others(tmp_path: Path) -> None:
    write(tmp_path, 30)
    skipped = Gap(20, datetime(2026, 1, 1, tzinfo=UTC), "skipped by query q", lost=(15, 20), query="q")
    FolderCoordinator(str(tmp_path)).record(SOURCE, [skipped])
    async with subscribed(tmp_path) as peer:
        request = b'{"from": 0, "to": 30, "metadata": "position"}'
        async with peer.stream("logs.all", request) as items:
            assert [json.loads(item.metadata or b"").get("position") async for item in items] == [*range(30)]


async def test_rows_that_are_trimmed_while_they_are_read_are_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path, 10, 10, segment_bytes=1)
    real = JournalReader.read

    def read(self: JournalReader, *arguments: Any, **named: Any) -> Any:
        trim(folder, 10, retain_bytes=0)
        return real(self, *arguments, **named)

    monkeypatch.setattr(JournalReader, "read", read)
    async with subscribed(tmp_path) as peer:
        assert await numbers(peer, b'{"from": 5, "to": 20, "loss": "skip"}') == list(range(10, 20))


async def test_a_log_that_was_collected_again_ends_it(tmp_path: Path) -> None:
    folder = write(tmp_path, 30)
    async with subscribed(tmp_path) as peer, peer.stream("logs.all", b"20") as items:
        reader = aiter(items)
        assert [int((await anext(reader)).data) for _ in range(10)] == list(range(20, 30))
        folder.rename(tmp_path / "old")
        write(tmp_path / "new", 5)
        log_folder(tmp_path / "new", SOURCE).rename(folder)
        with pytest.raises(ApplicationError, match="JournalM"):
            await asyncio.wait_for(anext(reader), 10)


async def test_a_feed_may_have_another_default(tmp_path: Path) -> None:
    write(tmp_path, 10)
    service = Service()
    service.stream("all")(JournalFeed(tmp_path, SOURCE, Subscription(start="earliest", end="now")))
    url = f"rsocket+memory://{tmp_path.name}"
    async with weirpool.serve(service, url), weirpool.connect(url) as peer, peer.stream("all") as items:
        assert [int(item.data) async for item in items] == list(range(10))


async def test_arrow_for_those_who_want_columns(tmp_path: Path) -> None:
    write(tmp_path, 9_000)
    async with (
        subscribed(tmp_path) as peer,
        peer.stream("logs.all", b'{"from": 0, "to": 9000, "form": "arrow"}') as items,
    ):
        tables = [pa.ipc.open_stream(item.data).read_all() async for item in items]
    assert pa.concat_tables(tables)["position"].to_pylist() == list(range(9_000))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_json_tells_positions_in_every_protocol(tmp_path: Path, protocol: str) -> None:
    write(tmp_path, 10)
    async with (
        subscribed(tmp_path, protocol) as peer,
        peer.stream("logs.all", b'{"from": 4, "to": 6, "form": "json"}') as items,
    ):
        found = [json.loads(item.data) async for item in items]
    assert [(each["position"], each["data"], each.get("metadata")) for each in found] == [
        (4, "4", "m4"),
        (5, "5", None),
    ]


async def test_a_journal_that_is_not_there_yet(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="cannot name a source"):
        Service().journal("logs.all", tmp_path, source="../etc")
    async with subscribed(tmp_path / "later", source=SOURCE) as peer:
        with pytest.raises(ApplicationError, match="JournalMissing: these rows cannot be read"):
            await numbers(peer, b"earliest")
    async with subscribed(tmp_path / "later") as peer:
        with pytest.raises(ApplicationError, match="none yet"):
            await numbers(peer, b"earliest")
    assert not log_folder(tmp_path / "later", SOURCE).exists()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("credit", [1, 64])
async def test_nothing_is_lost_or_doubled_at_the_seam_while_a_writer_races(
    tmp_path: Path, protocol: str, credit: int
) -> None:
    chance = random.Random(credit)
    end, rows = 150, 40
    write(tmp_path, rows, segment_bytes=500)

    def race() -> None:
        with JournalWriter.open(tmp_path, SOURCE, segment_bytes=chance.choice([500, 5_000]), fsync=False) as writer:
            while writer.position < end:
                append(writer, min(chance.randint(1, 9), end - writer.position))

    async def follow(start: int | str, after: int) -> None:
        request = json.dumps({"from": start, "to": end})
        found = []
        while after < end:
            # Each connection to the stream is left in the middle, and continued from the next position.
            part = await numbers(peer, request.encode(), chance.choice([50, end]), credit)
            found += part
            after = part[-1] + 1 if part else end
            request = json.dumps({"from": after, "to": end})
        first = start if isinstance(start, int) else found[0] if start == "new" and found else 0
        assert found == list(range(first, end)) or (start == "new" and not found)

    async with subscribed(tmp_path, protocol) as peer:
        readers = [follow(start, 0) for start in ("earliest", 0, 39, 40, "2000-01-01T00:00:00Z", "new")]
        await asyncio.gather(asyncio.to_thread(race), *readers)
