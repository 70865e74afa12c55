from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.transports import interactions
from tests.transports.recording import Recorder, connected, joined, listening, raw_connection
from tests.waiting import turns
from weirpool import ConnectError, LinkLost, Settings, transports
from weirpool.settings import DEFAULT_SETTINGS
from weirpool.transports import Link, tcp
from weirpool.transports.names import addresses_of
from weirpool.urls import parse_url

# Bytes.


async def test_bytes_arrive_in_order_both_ways() -> None:
    async with joined() as (client, server):
        await interactions.check_bytes_both_ways(client, server)


async def test_waiting_data_is_read_in_large_reads() -> None:
    async with joined() as (client, server):
        frames = [b"\0\0\x06%06d" % number for number in range(1_000)]
        server.link.pause_reading()
        for frame in frames:
            client.link.write(frame)
        server.link.resume_reading()
        await server.has(b"".join(frames))
        assert server.reads < 100


async def test_nothing_is_held_back_for_company() -> None:
    async with joined() as (client, server):
        for end in (client, server):
            connection = end.link._transport.get_extra_info("socket")
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_reader_that_is_slow_slows_its_writer() -> None:
    async with joined(settings=Settings(output_high_bytes=1_000_000)) as (client, server):
        server.link.pause_reading()
        written = 0
        while "paused" not in client.told:
            client.link.write(bytes(50_000))
            written += 50_000
        assert client.link.get_write_buffer_size() > 1_000_000
        # It stays so.
        await turns(50)
        assert client.told == ["made", "paused"]
        server.link.resume_reading()
        await client.until(lambda: "resumed" in client.told)
        await server.has(bytes(written))


# Ends.


async def test_output_before_close_arrives() -> None:
    async with joined() as (client, server):
        await interactions.check_last_words(client, server)


async def test_closed_link_accepts_further_input() -> None:
    # A socket that is closed with input unread is reset, and what the peer has not read is lost.
    async with listening() as place, raw_connection(place.port) as (reader, writer):
        server = await place.next()
        await server.until(lambda: server.link is not None)
        server.link.write(b"farewell")
        server.link.close()
        writer.write(bytes(1_000_000))
        await writer.drain()
        assert await reader.read() == b"farewell"
        writer.close()
        assert await server.lost() is None


async def test_a_peer_that_never_closes_its_half_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "LINGER", 0.0)
    async with listening() as place, raw_connection(place.port):
        server = await place.next()
        await server.until(lambda: server.link is not None)
        server.link.close()
        assert await server.lost() is None


async def test_a_peer_that_closes_its_half_ends_the_link_in_order() -> None:
    async with listening() as place, raw_connection(place.port) as (reader, writer):
        writer.write(b"last words")
        writer.write_eof()
        server = await place.next()
        await server.has(b"last words")
        assert await server.lost() is None
        assert await reader.read() == b""


async def test_a_link_that_is_reset_is_lost_with_the_reason() -> None:
    async with joined() as (client, server):
        connection = server.link._transport.get_extra_info("socket")
        # Closing without lingering sends a reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        server.link.abort()
        error = await client.lost()
        assert isinstance(error, LinkLost)
        assert "reset" in str(error)


class Shy(Recorder):
    """Wants no link at all."""

    def link_made(self, link: Link) -> None:
        super().link_made(link)
        link.abort()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_link_lost_at_once_closes_no_foreign_descriptor(
    new_loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, kept = tcp._connected, list[socket.socket]()

    async def keep(*place: Any) -> socket.socket:
        kept.append(await connect(*place))
        return kept[0]

    async def lose() -> int:
        async with listening() as place:
            shy = Shy()
            await transports.connect(parse_url(place.url), shy, DEFAULT_SETTINGS, None)
            await shy.lost()
        # A closed descriptor has a number that the next file gets.
        return kept[0].fileno()

    monkeypatch.setattr(tcp, "_connected", keep)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(lose()) == -1


# Places.


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("scheme", ["tcp", "unix"])
def test_link_made_for_a_canceled_task_is_lost(
    new_loop: Callable[[], asyncio.AbstractEventLoop], scheme: str, tmp_path: Path
) -> None:
    tasks = list[asyncio.Task[None]]()

    class Canceling(Recorder):
        def link_made(self, link: Link) -> None:
            super().link_made(link)
            tasks[0].cancel()

    async def connect() -> None:
        async with listening(
            f"rsocket+unix://{tmp_path}/s" if scheme == "unix" else "rsocket+tcp://127.0.0.1:0"
        ) as place:
            receiver = Canceling()
            connecting = transports.connect(parse_url(place.url), receiver, DEFAULT_SETTINGS, None)
            tasks.append(asyncio.ensure_future(connecting))
            await asyncio.wait(tasks)
            assert tasks[0].cancelled()
            await receiver.lost()
            assert receiver.told == ["made", "lost"]
            await turns(10)
            assert receiver.told == ["made", "lost"]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(connect(), 30))


async def test_connection_closes_when_it_cannot_be_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = list[socket.socket]()

    def fail(connection: socket.socket) -> None:
        accepted.append(connection)
        raise OSError(errno.ENOPROTOOPT, os.strerror(errno.ENOPROTOOPT))

    monkeypatch.setattr(tcp, "_no_delay", fail)
    async with listening() as place, raw_connection(place.port) as (reader, _):
        assert isinstance(await (await place.next()).lost(), LinkLost)
        assert accepted[0].fileno() == -1
        assert await reader.read() == b""


async def test_connect_skips_addresses_without_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    async def also_unsupported(*arguments: Any) -> list[Any]:
        found = await addresses_of(*arguments)
        # As IPv6 on systems without it.
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_UDP, "", found[0][4]), *found]

    async with listening() as place:
        monkeypatch.setattr(tcp, "addresses_of", also_unsupported)
        client = await connected(place.url)
        assert client.told == ["made"]
        client.link.abort()
        await client.lost()


async def test_a_port_in_use_is_one_clear_error() -> None:
    async with listening() as place:
        with pytest.raises(
            ConnectError, match=rf"tcp://127.0.0.1:{place.port}: the address is in use; stop the other server"
        ):
            async with listening(place.url):
                pass


async def test_closed_listener_takes_no_links_and_keeps_old_ones() -> None:
    async with listening() as place:
        await interactions.check_closed_listener(place)


async def test_refused_connection_closes_before_sending() -> None:
    async with listening() as place:
        place.refusing = True
        client = await connected(place.url)
        await client.lost()
        assert (client.data, place.addresses) == (b"", ["127.0.0.1"])


@pytest.mark.parametrize("host", ["", "0.0.0.0", "localhost"])
async def test_every_interface_can_be_connected_to_by_the_same_url(host: str) -> None:
    async with listening(f"rsocket+tcp://{host}:0") as place:
        client = await connected(place.url)
        server = await place.next()
        client.link.write(b"hi")
        await server.has(b"hi")
        client.link.abort()
        await server.lost()


async def test_links_wait_with_one_log_line_without_descriptors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # THREATS 74
    accept = socket.socket.accept
    errors = [errno.EMFILE, errno.EMFILE, errno.ECONNABORTED]

    def starved(listening: socket.socket) -> Any:
        if errors:
            number = errors.pop()
            raise OSError(number, os.strerror(number))
        return accept(listening)

    monkeypatch.setattr(tcp, "ACCEPT_RETRY", 0.0)
    monkeypatch.setattr(socket.socket, "accept", starved)
    async with listening() as place:
        client = await connected(place.url)
        server = await place.next()
        client.link.abort()
        await server.lost()
    assert [record.message for record in caplog.records if "cannot accept connections" in record.message] == [
        f"tcp://127.0.0.1:{place.port}: cannot accept connections: {os.strerror(errno.EMFILE)}"
    ]


# Unix sockets.


async def test_unix_socket_is_removed_with_its_listener(tmp_path: Path) -> None:
    url = f"rsocket+unix://{tmp_path}/s"
    async with joined(url) as (client, server):
        assert stat.S_ISSOCK(os.stat(tmp_path / "s").st_mode)
        client.link.write(b"there")
        server.link.write(b"back")
        await server.has(b"there")
        await client.has(b"back")
    assert os.listdir(tmp_path) == []
    with pytest.raises(ConnectError, match="the socket does not exist; check that the server is running"):
        await connected(url)


@pytest.mark.parametrize("how", ["unlink", "rename"])
async def test_closing_listener_keeps_the_socket_of_its_successor(tmp_path: Path, how: str) -> None:
    url = f"rsocket+unix://{tmp_path}/s"
    async with listening(url):
        if how == "unlink":
            os.unlink(tmp_path / "s")
        successor = listening(url if how == "unlink" else f"rsocket+unix://{tmp_path}/new")
        place = await successor.__aenter__()
        if how == "rename":
            os.rename(tmp_path / "new", tmp_path / "s")
    client = await connected(url)
    server = await place.linked()
    assert server.told == ["made"]
    client.link.abort()
    await successor.__aexit__(None, None, None)


async def test_unix_socket_is_replaced_when_stale_but_not_in_use(tmp_path: Path) -> None:
    url = f"rsocket+unix://{tmp_path}/s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "s"))
    async with joined(url) as (client, server):
        with pytest.raises(ConnectError, match="in use"):
            async with listening(url):
                pass
        # Whoever was there is still there.
        client.link.write(b"hi")
        await server.has(b"hi")


async def test_listen_needs_a_folder_for_its_socket(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="the folder does not exist; create it, or choose another path"):
        async with listening(f"rsocket+unix://{tmp_path}/missing/s"):
            pass


async def test_listen_keeps_a_file_that_is_not_a_socket(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("precious")
    with pytest.raises(ConnectError, match="in use"):
        async with listening(f"rsocket+unix://{tmp_path}/s"):
            pass
    assert (tmp_path / "s").read_text() == "precious"
