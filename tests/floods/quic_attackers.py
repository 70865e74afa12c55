"""A client of QUIC that floods a server, or does not read from it: plain aioquic, from an address of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aioquic.asyncio import QuicConnectionProtocol
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

from tests.floods.attackers import ATTACKER
from tests.floods.flooding import Victim
from tests.transports.certificates import Certificates
from weirpool.urls import parse_url

DATAGRAM_BYTES = 32_768
"""Large datagrams make a flood short."""
WINDOW_BYTES = 1 << 20
"""What a server lets a client send on a stream before it reads."""


class Attacker(QuicConnectionProtocol):
    """A connection whose streams are links.

    Attributes:
        ended: The streams that the server has reset or ended.
        received: The bytes that have arrived, by stream.
        over: Whether the connection has ended.

    """

    def __init__(self, quic: QuicConnection) -> None:
        super().__init__(quic)
        self.ended: set[int] = set()
        self.received: dict[int, int] = {}
        self.over = False
        self._changed = asyncio.Event()

    def quic_event_received(self, event: events.QuicEvent) -> None:
        if isinstance(event, events.StreamReset) or (isinstance(event, events.StreamDataReceived) and event.end_stream):
            self.ended.add(event.stream_id)
        if isinstance(event, events.StreamDataReceived):
            self.received[event.stream_id] = self.received.get(event.stream_id, 0) + len(event.data)
        self.over = self.over or isinstance(event, events.ConnectionTerminated)
        self._changed.set()

    def say(self, stream_id: int, data: bytes) -> None:
        """Send data as far as the server allows, and the rest later."""
        self._quic.send_stream_data(stream_id, data)
        self.transmit()

    def open(self, data: bytes) -> int:
        """Open a stream that begins with `data`, and return its id."""
        stream_id = self._quic.get_next_available_stream_id()
        self.say(stream_id, data)
        return stream_id

    def skip(self) -> int:
        """Open a stream, and send only the last byte that its window allows: the server waits for all others."""
        stream_id = self._quic.get_next_available_stream_id()
        sender = self._quic._get_or_create_stream_for_send(stream_id).sender
        sender._buffer_start = sender._buffer_stop = WINDOW_BYTES - 1
        self.say(stream_id, b"x")
        return stream_id

    def read_no_more(self) -> None:
        """Let the server send no more than it may now, as if its data were not read."""
        self._quic._write_connection_limits = self._quic._write_stream_limits = _extend_nothing  # type: ignore[method-assign]

    async def until_ended(self, streams: int) -> None:
        """Wait until the server has ended so many streams, or the connection."""
        while len(self.ended) < streams and not self.over:
            self._changed.clear()
            await self._changed.wait()

    async def until_received(self, streams: int, count: int) -> None:
        """Wait until so many streams have received `count` bytes, or the connection has ended."""
        while sum(size >= count for size in self.received.values()) < streams and not self.over:
            self._changed.clear()
            await self._changed.wait()


def _extend_nothing(*arguments: object, **named: object) -> None:
    """Send no frame that extends a window."""


@asynccontextmanager
async def quic_attacker(flooded: Victim, certificates: Certificates) -> AsyncIterator[Attacker]:
    """Open a connection of the attacker."""
    configuration = QuicConfiguration(
        alpn_protocols=["rsocket"], server_name="localhost", max_datagram_size=DATAGRAM_BYTES
    )
    configuration.load_verify_locations(str(certificates.folder / "ca.pem"))
    transport, attacker = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: Attacker(QuicConnection(configuration=configuration)), local_addr=(ATTACKER, 0)
    )
    try:
        attacker.connect(("127.0.0.1", parse_url(flooded.url).port))
        await attacker.wait_connected()
        yield attacker
    finally:
        attacker.close()
        transport.close()
