"""Both ends of QUIC links, and QUIC peers without Weirpool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aioquic.asyncio import QuicConnectionProtocol
from aioquic.asyncio import connect as quic_connect
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration

from tests.transports.certificates import Certificates
from tests.transports.recording import Place, Recorder, connected, listening
from weirpool import Settings


async def met(server: Recorder) -> Recorder:
    """Return a receiver when it has its link."""
    await server.until(lambda: server.link is not None)
    return server


@asynccontextmanager
async def quic_link(
    certificates: Certificates, settings: Settings | None = None
) -> AsyncIterator[tuple[Recorder, Recorder, Place]]:
    """Yield both ends of a link after the client's first data."""
    settings = settings or Settings()
    async with listening(f"rsocket+quic://127.0.0.1:0?{certificates.server_options}", settings) as place:
        client = await connected(certificates.to_client(place.url), settings)
        client.link.write(b"hello")
        server = await met(await place.next())
        await server.has(b"hello")
        server.data = b""
        try:
            yield client, server, place
        finally:
            for end in (client, server):
                end.link.abort()
                await end.lost()


class Raw(QuicConnectionProtocol):
    """A peer without Weirpool: plain aioquic."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.told: list[events.QuicEvent] = []
        self.data: dict[int, bytes] = {}
        self._changed = asyncio.Event()

    def quic_event_received(self, event: events.QuicEvent) -> None:
        self.told.append(event)
        if isinstance(event, events.StreamDataReceived):
            self.data[event.stream_id] = self.data.get(event.stream_id, b"") + event.data
        self._changed.set()

    def say(self, stream_id: int, data: bytes, end: bool = False) -> None:
        self._quic.send_stream_data(stream_id, data, end)
        self.transmit()

    async def next(self, kind: type[events.QuicEvent]) -> Any:
        """Wait for the first event of a kind."""
        while True:
            for event in self.told:
                if isinstance(event, kind):
                    return event
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def raw_client(place: Place, certificates: Certificates, alpn: str | None = "rsocket") -> AsyncIterator[Raw]:
    configuration = QuicConfiguration(alpn_protocols=[alpn] if alpn else None, server_name="localhost")
    configuration.load_verify_locations(str(certificates.folder / "ca.pem"))
    async with quic_connect("127.0.0.1", place.port, configuration=configuration, create_protocol=Raw) as raw:
        assert isinstance(raw, Raw)
        yield raw
    # The server detects the end a little later.
    for server in place.accepted:
        await server.lost()
