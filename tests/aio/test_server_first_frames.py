"""First frames that do not begin a session, over real links of every transport."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import weirpool
from tests.rsocket.first_frames import EARLIEST, FOREIGN, LATER, LIMIT, First
from tests.transports.every import PLACES, Place, make_place
from weirpool import Service, Settings, Setup, SetupRejected
from weirpool import transports as links
from weirpool.transports import Link
from weirpool.urls import parse_url
from weirpool.wire.rsocket.dump import read_frames

SHARED = ("tcp", "tls", "unix")
RECONNECT = weirpool.Reconnect()
SETTINGS = Settings(max_setup_frame_bytes=LIMIT, max_refusals_per_address=0)


class Raw:
    """A client without a protocol: all that the server has sent when it has closed the link."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.made: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def link_made(self, link: Link) -> None:
        self.made.set_result(link)

    def received(self, data: bytes) -> None:
        self.got += data

    def writing_paused(self) -> None:
        """Ignore it."""

    def writing_resumed(self) -> None:
        """Ignore it."""

    def link_lost(self, error: Exception | None) -> None:
        self.ended.set_result(bytes(self.got))


async def answer(place: Place, url: str, data: bytes) -> bytes:
    """Return what the server answers to `data` before it closes the link."""
    raw = Raw()
    await links.connect(parse_url(place.for_client(url)), raw, SETTINGS, place.client)
    (await raw.made).write(data)
    return await raw.ended


def with_length(body: bytes, width: int) -> bytes:
    return (len(body) + (4 if width == 4 else 0)).to_bytes(width, "big") + body


def error(data: bytes, dialect: str, width: int) -> tuple[int, int]:
    """Return the stream and the code of the only frame in `data`."""
    ((_, frame),) = read_frames(data, dialect, width)
    return frame.stream_id, frame.code  # type: ignore[attr-defined]


@pytest.mark.parametrize("transport", PLACES)
@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0"])
async def test_each_first_frame_is_answered(tmp_path: Path, protocol: str, transport: str) -> None:
    place = make_place(transport, protocol, tmp_path)
    dialect, frames = (protocol, EARLIEST) if protocol.endswith("0.0") else ("rsocket-1.0", LATER)
    width = 4 if protocol.endswith("0.0") and transport not in ("ws", "wss") else 3
    async with weirpool.serve(Service(), place.url, settings=SETTINGS, ssl=place.server) as server:
        wrong: dict[str, object] = {}

        async def check(first: First) -> None:
            # More bytes are needed than a frame that is shorter than its header has.
            rest = b"" if transport in ("ws", "wss") else bytes(8)
            said = await answer(place, server.urls[0], with_length(first.body, width) + rest)
            if protocol == "rsocket" and transport in SHARED and not first.known:
                expected, found = b"", said
            else:
                expected, found = (0, first.code), error(said, dialect, width) if said else said
            if found != expected:
                wrong[first.name] = found

        for first in frames:
            await check(first)
        assert wrong == {}


@pytest.mark.parametrize("transport", SHARED)
@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams"])
async def test_other_protocols_are_not_answered(tmp_path: Path, protocol: str, transport: str) -> None:
    place = make_place(transport, protocol, tmp_path)
    async with weirpool.serve(
        Service(), place.url, settings=Settings(max_refusals_per_address=0), ssl=place.server
    ) as server:
        assert [await answer(place, server.urls[0], data) for data in FOREIGN] == [b""] * len(FOREIGN)


@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0"])
async def test_acceptor_that_is_late_rejects_the_set_up(protocol: str) -> None:
    # RSocket 1.0, Connection Establishment: the error has a code of the set-up.
    async def hang(setup: Setup) -> None:
        await asyncio.get_running_loop().create_future()

    settings = Settings(acceptor_timeout=0.01)
    async with weirpool.serve(Service(), f"{protocol}+tcp://127.0.0.1:0", acceptor=hang, settings=settings) as server:
        peer = weirpool.connect(server.urls[0], reconnect=False)
        with pytest.raises(SetupRejected, match=r"the acceptor took longer than acceptor_timeout \(0.01 s\)") as caught:
            async with peer as connected:
                await connected.call("x", b"")
        assert caught.value.code == 0x003
        assert caught.value.temporary and caught.value.undecided


async def test_client_tries_again_after_a_late_acceptor() -> None:
    service = Service()
    service.call("echo")(lambda request: request)
    asked = []

    async def late_once(setup: Setup) -> None:
        asked.append(setup)
        if len(asked) == 1:
            await asyncio.get_running_loop().create_future()

    settings = Settings(acceptor_timeout=0.01)
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0", acceptor=late_once, settings=settings) as server:
        async with weirpool.connect(server.urls[0], reconnect=RECONNECT) as peer:
            with pytest.raises(SetupRejected, match="acceptor_timeout"):
                await peer.call("echo", b"hi")
            assert (await peer.call("echo", b"hi")).data == b"hi"
    assert len(asked) == 2
