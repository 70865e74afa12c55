"""Output over TLS waits where it is counted, and the buffers of TLS stay small."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvloop

from tests.transports.certificates import Certificates
from tests.transports.recording import Recorder, connected, listening
from weirpool.transports.encrypted import PART_BYTES, EncryptedTransport

HIGH_BYTES = 4 * PART_BYTES


class FakeTransport:
    """An asyncio transport that is full after one part.

    Attributes:
        parts: The sizes of what was written.
        told: The other recorded calls.
        protocol: What is told to pause and resume.

    """

    def __init__(self) -> None:
        self.parts: list[int] = []
        self.told: list[str] = []
        self.protocol: Any = None
        self.waiting = 0

    def write(self, data: bytes) -> None:
        self.parts.append(len(data))
        self.waiting += len(data)
        if self.waiting >= PART_BYTES:
            self.protocol.pause_writing()

    def sent(self) -> None:
        """Send everything."""
        self.waiting = 0
        self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == PART_BYTES

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> None:
        """Return None."""

    def close(self) -> None:
        self.told.append("close")

    def abort(self) -> None:
        self.told.append("abort")

    pause_reading = resume_reading = close


@pytest.fixture
def socket() -> FakeTransport:
    return FakeTransport()


@pytest.fixture
def receiver() -> Recorder:
    return Recorder()


@pytest.fixture
def tls(socket: FakeTransport, receiver: Recorder) -> EncryptedTransport:
    made = socket.protocol = EncryptedTransport(cast(Any, socket), cast(Any, SimpleNamespace(receiver=receiver)))
    made.set_write_buffer_limits(high=HIGH_BYTES)
    return made


async def test_large_output_is_passed_on_in_parts(
    tls: EncryptedTransport, socket: FakeTransport, receiver: Recorder
) -> None:
    # THREATS 40
    size = HIGH_BYTES + 2 * PART_BYTES + 1
    tls.write(b"1")
    tls.write(bytes(size))
    assert socket.parts == [1, PART_BYTES]
    assert tls.get_write_buffer_size() == 1 + size
    assert receiver.told == ["paused"]
    while tls.get_write_buffer_size():
        socket.sent()
    assert socket.parts == [1, *[PART_BYTES] * 6, 1]
    assert receiver.told == ["paused", "resumed"]
    tls.write(b"2")
    assert socket.parts[-1] == 1


async def test_small_output_waits_behind_large_output(tls: EncryptedTransport, socket: FakeTransport) -> None:
    tls.write(bytes(PART_BYTES + 3))
    tls.write(b"12")
    assert socket.parts == [PART_BYTES]
    socket.sent()
    assert socket.parts == [PART_BYTES, 3, 2]


async def test_close_sends_what_waits(tls: EncryptedTransport, socket: FakeTransport) -> None:
    tls.write(bytes(2 * PART_BYTES))
    tls.close()
    assert tls.is_closing() and socket.told == []
    tls.write(b"too late")
    socket.sent()
    assert (socket.parts, socket.told) == ([PART_BYTES, PART_BYTES], ["close"])


async def test_abort_discards_what_waits(tls: EncryptedTransport, socket: FakeTransport) -> None:
    tls.write(bytes(2 * PART_BYTES))
    tls.abort()
    assert (socket.parts, socket.told) == ([PART_BYTES], ["abort"])
    assert tls.get_write_buffer_size() == PART_BYTES


async def test_lost_link_releases_the_buffers_of_tls(certificates: Certificates) -> None:
    async with listening("rsocket+tls://localhost:0", ssl=certificates.server) as place:
        client = await connected(place.url, ssl=certificates.client)
        server = await place.next()
        gc.disable()
        try:
            buffers = [weakref.ref(each.link.get_extra_info("ssl_object")) for each in (client, server)]
            client.link.close()
            await client.lost()
            await server.lost()
            assert [each() for each in buffers] == [None, None]
        finally:
            gc.enable()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_large_output_arrives_in_order_after_its_reader_has_paused(
    new_loop: Callable[[], asyncio.AbstractEventLoop], certificates: Certificates
) -> None:
    data = b"".join(number.to_bytes(4, "big") for number in range(1_500_000))

    async def send() -> None:
        async with listening("rsocket+tls://localhost:0", ssl=certificates.server) as place:
            client = await connected(place.url, ssl=certificates.client)
            server = await place.next()
            server.link.pause_reading()
            client.link.write(data[:100])
            client.link.write(data[100:-3])
            client.link.write(data[-3:])
            assert client.told[-1] == "paused"
            assert client.link.get_write_buffer_size() > PART_BYTES
            server.link.resume_reading()
            await server.has(data)
            client.link.close()
            assert await server.lost() is None

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(send())
