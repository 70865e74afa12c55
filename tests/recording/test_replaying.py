from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any

import pytest

import weirpool
from tests.waiting import turns
from weirpool import ApplicationError, Invalid, LocalError, Rejected
from weirpool.aio.peer import Peer
from weirpool.recording.format import Event, Head, encode
from weirpool.recording.replaying import Recording, Replay, paced_events


def written(path: Path, *lines: Event) -> Recording:
    path.write_bytes(encode(Head(1, "there", "now")) + b"".join(map(encode, lines)))
    return Recording.read(path)


def stream(number: int, data: str, *items: str, kind: str = "stream", route: str = "r") -> list[Event]:
    request = Event(0.0, number, "request", kind=kind, route=route, data=data)
    return [
        request,
        *(Event(0.1 * n, number, "item", data=item) for n, item in enumerate(items)),
        Event(1.0, number, "end"),
    ]


@asynccontextmanager
async def replayed(recording: Recording, *arguments: Any, protocol: str = "rsocket") -> AsyncIterator[Peer]:
    async with weirpool.serve(Replay(recording, *arguments).service, f"{protocol}+memory://replay") as server:
        async with weirpool.connect(server.urls[0]) as peer:
            yield peer


async def items_of(peer: Peer, data: bytes) -> list[bytes]:
    return [item.data async for item in peer.stream("r", data)]


async def test_response_is_that_of_the_same_request(tmp_path: Path) -> None:
    lines = stream(1, "a", "1", "2") + stream(2, "b", "3")
    # Interactions may overlap in the file.
    lines[2], lines[5] = lines[5], lines[2]
    async with replayed(written(tmp_path / "file", *stream(1, "a", "1", "2"), *stream(2, "b", "3")), inf) as peer:
        assert await items_of(peer, b"a") == [b"1", b"2"]
        assert await items_of(peer, b"b") == [b"3"]
        # None was recorded for this one.
        assert await items_of(peer, b"c") == [b"1", b"2"]
        assert await items_of(peer, b"c") == [b"3"]


async def test_interactions_that_overlap_are_told_apart(tmp_path: Path) -> None:
    one, two = stream(1, "a", "1", "2", "3"), stream(2, "b", "4", "5", "6")
    mixed = [event for pair in zip(one, two, strict=True) for event in pair]
    async with replayed(written(tmp_path / "file", *mixed), inf) as peer:
        assert await items_of(peer, b"b") == [b"4", b"5", b"6"]
        assert await items_of(peer, b"a") == [b"1", b"2", b"3"]


@pytest.mark.parametrize("protocol", ["rsocket", "reactive-streams", "river"])
async def test_every_protocol_can_replay(tmp_path: Path, protocol: str) -> None:
    recording = written(
        tmp_path / "file", *stream(1, "1", "2", kind="call", route="a.b"), *stream(2, "1", "3", "4", route="a.c")
    )
    async with replayed(recording, inf, protocol=protocol) as peer:
        assert (await peer.call("a.b", b"1")).data == b"2"
        assert [item.data async for item in peer.stream("a.c", b"1")] == [b"3", b"4"]


async def test_errors_are_raised_again(tmp_path: Path) -> None:
    lines = [Event(0.0, 1, "request", kind="call", route="r"), Event(0.0, 1, "error", code=0x204, message="no")]
    async with replayed(written(tmp_path / "file", *lines), inf) as peer:
        with pytest.raises(Invalid, match="no"):
            await peer.call("r")
        with pytest.raises(Rejected, match="the recording has no 'x'; it has 'r'"):
            await peer.call("x")


async def test_channel_takes_the_items_of_its_client(tmp_path: Path) -> None:
    async with replayed(written(tmp_path / "file", *stream(1, "a", "1", kind="channel")), inf) as peer:
        found = [item.data async for item in peer.channel("r", b"a", [b"x"] * 1000)]
    assert found == [b"1"]


async def test_loop_begins_again_and_an_empty_stream_ends(tmp_path: Path) -> None:
    async with replayed(written(tmp_path / "file", *stream(1, "a", "1", "2"), *stream(2, "b")), inf, True) as peer:
        async with peer.stream("r", b"a") as looped:
            items = aiter(looped)
            assert [(await anext(items)).data for _ in range(5)] == [b"1", b"2", b"1", b"2", b"1"]
        assert await items_of(peer, b"b") == []


async def test_credit_delays_items_and_loses_none(tmp_path: Path) -> None:
    recording = written(tmp_path / "file", *stream(1, "a", *map(str, range(50))))
    async with replayed(recording, inf) as peer, peer.stream("r", b"a", credit=1, manual=True) as stream_:
        items = aiter(stream_)
        found = [(await anext(items)).data]
        await turns(100)
        assert not stream_.ready
        stream_.grant(49)
        found += [item.data async for item in items]
    assert found == [b"%d" % n for n in range(50)]


async def test_distances_are_those_of_the_recording_divided_by_the_speed() -> None:
    clock = asyncio.get_running_loop().time
    began = clock()
    recorded = [Event(t, 1, "item") for t in (5.0, 5.0, 6.0)]
    times = [clock() - began async for _ in paced_events(iter(recorded), 10.0)]
    assert times[1] < 0.09 <= times[2]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no requests"),
        ([Event(0.0, 1, "request", kind="dance")], "unknown kind"),
        ([Event(0.0, 1, "end")], "no requests"),
    ],
)
def test_recording_without_requests_is_refused(tmp_path: Path, lines: list[Event], message: str) -> None:
    with pytest.raises(LocalError, match=message):
        written(tmp_path / "file", *lines)


async def test_what_is_no_error_of_the_peer_is_not_hidden(tmp_path: Path) -> None:
    lines = [
        Event(0.0, 1, "request", kind="call", route="r"),
        Event(0.0, 1, "error", code="NO", message="m", data="{}"),
    ]
    async with replayed(written(tmp_path / "file", *lines), inf, protocol="rsocket") as peer:
        with pytest.raises(ApplicationError):
            await peer.call("r")
