"""How a connection treats peers that break HTTP/2, or flood it (THREATS 9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from h2 import events
from h2.errors import ErrorCodes
from hyperframe.frame import ContinuationFrame, DataFrame, HeadersFrame, PingFrame, PriorityFrame, SettingsFrame

from tests.transports.raw_http2 import Raw, raw_client, raw_server
from tests.transports.recording import Place, Recorder, connected, listening
from tests.waiting import until
from weirpool import LimitExceeded, LinkLost, Settings
from weirpool.ledger import LEDGER
from weirpool.transports.http2_connection import FRAME_BYTES

H2C = "rsocket+h2c://127.0.0.1:0"


@asynccontextmanager
async def open_link(settings: Settings | None = None) -> AsyncIterator[tuple[Raw, Recorder, Place]]:
    """Give a raw client with one open stream, and the server's end of it."""
    async with listening(H2C, settings or Settings()) as place, raw_client(place.port) as raw:
        raw.request()
        server = await place.next()
        await server.until(lambda: server.link is not None)
        await raw.until(lambda: raw.find(events.SettingsAcknowledged) is not None)
        yield raw, server, place


async def given_up(raw: Raw, server: Recorder, code: ErrorCodes) -> Exception | None:
    """Wait until the server has given up the connection with `code`, and return what its link was told."""
    ended = await raw.next(events.ConnectionTerminated)
    assert ended.error_code == code
    raw.abort()
    return await server.lost()


# One frame may be cut anywhere.


async def test_bytes_may_be_cut_over_many_frames_with_padding() -> None:
    data = bytes(range(256)) * 4
    async with open_link() as (raw, server, _):
        for at in range(len(data)):
            raw.h2.send_data(1, data[at : at + 1], pad_length=at % 256)
        raw.flush()
        await server.has(data)


async def test_single_bytes_are_read_the_same() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        server = await place.next()
        await raw.next(events.RemoteSettingsChanged)
        sent: list[bytes] = []
        raw.send = sent.append  # type: ignore[method-assign]
        raw.request()
        raw.h2.send_data(1, b"hello", end_stream=True)
        raw.flush()
        del raw.send  # type: ignore[method-assign]
        for octet in b"".join(sent):
            raw.send(bytes([octet]))
            await asyncio.sleep(0)
        await server.has(b"hello")
        assert await server.lost() is None


# Floods.


def pings() -> bytes:
    return PingFrame(0, b"12345678").serialize()


def settings_frames() -> bytes:
    return SettingsFrame(0, {SettingsFrame.INITIAL_WINDOW_SIZE: 65_535}).serialize()


def acknowledgements() -> bytes:
    return PingFrame(0, b"12345678", flags=["ACK"]).serialize()


def priorities() -> bytes:
    return PriorityFrame(1, depends_on=3).serialize()


def unknown_frames() -> bytes:
    return b"\0\0\1\xee\0\0\0\0\0x"


@pytest.mark.parametrize("frame", [pings, settings_frames, acknowledgements, priorities, unknown_frames])
async def test_frames_that_carry_nothing_are_ordinary(frame: Callable[[], bytes]) -> None:
    # THREATS 9, 105: RFC 9113 does not limit them. What they cost is time, and answers that the peer must read.
    async with open_link() as (raw, server, _):
        raw.send(frame() * 2_000)
        raw.h2.send_data(1, b"hello")
        raw.flush()
        await server.has(b"hello")


async def test_peer_that_does_not_read_the_answers_to_its_pings_is_not_read() -> None:
    # THREATS 40
    async with open_link() as (raw, server, place):
        (connection,) = place.listener.connections
        socket = connection._socket
        connection.writing_paused()
        real, socket.get_write_buffer_size = socket.get_write_buffer_size, lambda: 10_000_000
        raw.send(pings())
        await until(lambda: connection._stopped)
        socket.get_write_buffer_size = real
        raw.h2.send_data(1, b"hello")
        raw.flush()
        for _ in range(50):
            await asyncio.sleep(0)
        assert server.data == b""
        connection.writing_resumed()
        await server.has(b"hello")


async def test_empty_data_in_a_row_is_counted() -> None:
    async with open_link() as (raw, server, _):
        empty = DataFrame(1).serialize()
        few = empty * Settings().max_empty_fragments
        raw.send(few + DataFrame(1, b"a").serialize() + few + DataFrame(1, b"b").serialize())
        await server.has(b"ab")
        raw.send(few + empty)
        error = await given_up(raw, server, ErrorCodes.ENHANCE_YOUR_CALM)
        assert isinstance(error, LimitExceeded)
        assert "more than max_empty_fragments (16) empty DATA frames in a row" in str(error)


@pytest.mark.parametrize("how", ["reset", "ended", "declined"])
async def test_brief_streams_have_no_limit(how: str) -> None:
    # THREATS 105
    async with open_link() as (raw, server, _):
        for _ in range(2_100):
            stream_id = raw.request("/wrong" if how == "declined" else "/", end_stream=how != "reset")
            if how == "reset":
                raw.h2.reset_stream(stream_id)
                raw.flush()
            await raw.until(lambda: raw.h2.open_outbound_streams < 50)
        raw.h2.send_data(1, b"hello")
        raw.flush()
        await server.has(b"hello")
        assert server.told == ["made"]


async def test_a_header_that_never_ends_is_given_up() -> None:
    async with open_link() as (raw, server, _):
        header = HeadersFrame(3, b"\x82").serialize()
        raw.send(header + ContinuationFrame(3, b"").serialize() * 100)
        error = await given_up(raw, server, ErrorCodes.PROTOCOL_ERROR)
        assert isinstance(error, LinkLost)
        assert "Too many continuation frames" in str(error)


async def test_headers_that_are_too_large_are_given_up() -> None:
    async with open_link() as (raw, server, _):
        # A header that both sides have learned costs one byte each time it is repeated.
        headers = [(":method", "POST"), (":scheme", "http"), (":path", "/"), *[("x", "y" * 3_000)] * 30]
        block = raw.h2.encoder.encode(headers)
        assert len(block) < 5_000
        raw.send(HeadersFrame(3, block, flags=["END_HEADERS"]).serialize())
        error = await given_up(raw, server, ErrorCodes.ENHANCE_YOUR_CALM)
        assert isinstance(error, LinkLost) and "the peer violated HTTP/2" in str(error)


async def test_oversized_frame_fails_by_its_header() -> None:
    # THREATS 3
    async with open_link() as (raw, server, _):
        raw.send((FRAME_BYTES + 1).to_bytes(3) + b"\0\0\0\0\0\1")
        error = await given_up(raw, server, ErrorCodes.FRAME_SIZE_ERROR)
        assert "a frame of 65537 bytes; at most 65536 are allowed" in str(error)


def held_by(identity: str) -> int:
    group = LEDGER.identities.get(identity)
    return 0 if group is None else group.held


async def test_part_of_a_frame_is_counted() -> None:
    # THREATS 86
    async with open_link() as (raw, server, place):
        [connection] = place.listener.connections
        frame = DataFrame(1, bytes(FRAME_BYTES)).serialize()
        raw.send(frame[:-1])
        await until(lambda: held_by("127.0.0.1") == len(frame) - 1)
        raw.send(frame[-1:])
        await server.has(bytes(FRAME_BYTES))
        assert held_by("127.0.0.1") <= 1
        raw.send(frame[:-1])
        await until(lambda: held_by("127.0.0.1") == len(frame) - 1)
        raw.abort()
        await server.lost()
        assert held_by("127.0.0.1") == 0
        assert not connection._h2.incoming_buffer._data


async def test_connection_with_too_much_of_frames_is_aborted() -> None:
    # THREATS 86
    async with open_link(Settings(max_connection_bytes=FRAME_BYTES // 2)) as (raw, server, _):
        raw.send(DataFrame(1, bytes(FRAME_BYTES)).serialize()[:-1])
        assert "a limit of bytes is reached" in str(await server.lost())
        await until(lambda: held_by("127.0.0.1") == 0)


async def test_output_without_a_link_is_counted() -> None:
    # THREATS 40
    async with open_link() as (_, server, place):
        [connection] = place.listener.connections
        before = held_by("127.0.0.1")
        connection._socket.get_write_buffer_size = lambda: 5_000
        server.link.abort()
        await server.lost()
        assert (before, held_by("127.0.0.1")) == (0, 5_000)
        connection._socket.get_write_buffer_size = lambda: 0
        connection.writing_resumed()
        assert held_by("127.0.0.1") <= 1


async def test_more_data_than_the_window_allows_is_given_up() -> None:
    async with open_link() as (raw, server, _):
        server.link.pause_reading()
        frame = DataFrame(1, bytes(FRAME_BYTES)).serialize()
        raw.send(frame * 17)
        error = await given_up(raw, server, ErrorCodes.FLOW_CONTROL_ERROR)
        assert isinstance(error, LinkLost)


@pytest.mark.parametrize(
    "junk", [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"\0" * 24]
)
async def test_client_without_http2_is_closed(junk: bytes) -> None:
    # THREATS 10
    async with listening(H2C) as place:
        reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
        writer.write(junk)
        server = await place.next()
        said = await reader.read()
        writer.close()
        assert junk not in said
        error = await server.lost()
        assert isinstance(error, LinkLost) and "the peer violated HTTP/2" in str(error)
        assert server.told == ["lost"]


async def test_client_answers_any_number_of_pings() -> None:
    async with raw_server() as place:
        connecting = asyncio.create_task(connected(f"rsocket+h2c://127.0.0.1:{place.port}"))
        raw = await place.came.get()
        await raw.next(events.RequestReceived)
        raw.h2.send_headers(1, [(":status", "200")])
        raw.flush()
        client = await connecting
        raw.send(pings() * 2_000)
        raw.h2.send_data(1, b"hello")
        raw.flush()
        await client.has(b"hello")


# Windows.


async def test_small_window_gets_small_frames() -> None:
    async with open_link() as (raw, server, _):
        data = bytes(range(256)) * 2_000
        server.link.write(data)
        await raw.until(lambda: len(raw.data.get(1, b"")) == len(data))
        assert raw.data[1] == data
        sizes = [len(one.data) for one in raw.told if isinstance(one, events.DataReceived)]
        assert max(sizes) <= raw.h2.max_inbound_frame_size


async def test_closed_window_stops_output() -> None:
    async with open_link(Settings(output_high_bytes=1_000)) as (raw, server, _):
        raw.acknowledging = False
        server.link.write(bytes(100_000))
        await raw.until(lambda: len(raw.data.get(1, b"")) == 65_535)
        assert server.link.get_write_buffer_size() == 100_000 - 65_535
        assert server.told == ["made", "paused"]
        # A stream's window may also grow by the setting for all.
        raw.h2.increment_flow_control_window(10_000)
        raw.h2.increment_flow_control_window(10_000, 1)
        raw.flush()
        await raw.until(lambda: len(raw.data[1]) == 75_535)
        raw.h2.increment_flow_control_window(50_000)
        raw.h2.update_settings({SettingsFrame.INITIAL_WINDOW_SIZE: 200_000})
        raw.flush()
        await raw.until(lambda: len(raw.data[1]) == 100_000)
        await server.until(lambda: "resumed" in server.told)


async def test_two_links_that_are_full_take_turns() -> None:
    async with open_link() as (raw, first, place):
        raw.acknowledging = False
        first.link.write(bytes(100_000))
        await raw.until(lambda: len(raw.data.get(1, b"")) == 65_535)
        raw.request()
        second = await place.next()
        await second.until(lambda: second.link is not None)
        second.link.write(bytes(50_000))
        raw.h2.increment_flow_control_window(200_000, 1)
        raw.h2.increment_flow_control_window(40_000)
        raw.flush()
        await raw.until(lambda: len(raw.data[1]) + len(raw.data.get(3, b"")) == 105_535)
        assert len(raw.data[3]) >= 16_384 and len(raw.data[1]) > 65_535
