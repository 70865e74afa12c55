from __future__ import annotations

import asyncio
import ssl

import pytest

from tests.transports.recording import connected, joined, listening
from tests.waiting import turns
from weirpool import ConnectError, LinkLost, LocalError, Settings, UrlError

URL = "rsocket+memory://place"


async def test_output_arrives_in_order_in_a_later_turn() -> None:
    async with joined(URL) as (client, server):
        client.link.write(b"a")
        client.link.write(b"")
        client.link.write(b"b")
        server.link.write(b"back")
        assert (server.data, client.data) == (b"", b"")
        await server.has(b"ab")
        await client.has(b"back")
        assert server.reads == 2


async def test_paused_reader_pauses_the_writer() -> None:
    async with joined(URL, Settings(output_high_bytes=100)) as (client, server):
        server.link.pause_reading()
        client.link.write(bytes(100))
        await turns(3)
        assert (client.told, server.data) == (["made"], b"")
        client.link.write(b"x")
        assert client.told == ["made", "paused"]
        assert client.link.get_write_buffer_size() == 101
        server.link.resume_reading()
        await server.has(bytes(100) + b"x")
        assert client.told == ["made", "paused", "resumed"]
        assert client.link.get_write_buffer_size() == 0


async def test_progress_counts_bytes_read() -> None:
    async with joined(URL) as (client, server):
        client.link.write(bytes(100))
        assert client.link.progress() == (100, 0)
        await server.has(bytes(100))
        assert client.link.progress() == (0, 100)


async def test_a_reader_may_stop_between_two_pieces() -> None:
    async with joined(URL) as (client, server):
        received = server.received

        def once(data: bytes) -> None:
            received(data)
            server.link.pause_reading()

        server.received = once  # type: ignore[method-assign]
        client.link.write(b"a")
        client.link.write(b"b")
        await turns(3)
        assert server.data == b"a"
        server.link.resume_reading()
        await server.has(b"ab")


async def test_a_link_that_is_closed_delivers_first() -> None:
    async with joined(URL) as (client, server):
        server.link.pause_reading()
        client.link.write(b"last words")
        client.link.close()
        client.link.write(b"too late")
        await turns(3)
        assert (client.told, server.told) == (["made"], ["made"])
        server.link.resume_reading()
        assert await server.lost() is None
        assert await client.lost() is None
        assert server.data == b"last words"


async def test_abort_discards_output_and_breaks_the_other_end() -> None:
    async with joined(URL) as (client, server):
        client.link.write(b"never")
        client.link.abort()
        client.link.abort()
        assert await client.lost() is None
        assert isinstance(await server.lost(), LinkLost)
        assert (server.data, client.told, server.told) == (b"", ["made", "lost"], ["made", "lost"])


async def test_both_ends_may_close_at_once() -> None:
    async with joined(URL) as (client, server):
        client.link.write(b"a")
        server.link.write(b"b")
        client.link.close()
        server.link.close()
        await client.lost()
        await server.lost()
        assert (client.told, server.told) == (["made", "lost"], ["made", "lost"])


async def test_nothing_else_is_known_of_a_link() -> None:
    async with joined(URL) as (client, _):
        assert client.link.get_extra_info("peercert") is None


async def test_a_name_is_taken_once_and_free_again() -> None:
    async with listening(URL):
        with pytest.raises(ConnectError, match="memory://place: the name is in use; choose another one"):
            async with listening(URL):
                pass
    async with listening(URL):
        pass


async def test_connect_without_listener_in_this_loop_raises() -> None:
    async with listening(URL):
        with pytest.raises(ConnectError, match="nothing in this event loop listens on this name"):
            await connected("rsocket+memory://elsewhere")
        with pytest.raises(ConnectError, match="nothing in this event loop listens on this name"):
            await asyncio.to_thread(asyncio.run, connected(URL))


async def test_refused_peer_gets_a_reason_at_once() -> None:
    async with listening(URL) as place:
        place.refusing = True
        with pytest.raises(ConnectError, match="the server is full"):
            await connected(URL)


async def test_memory_rejects_ssl() -> None:
    with pytest.raises(LocalError, match="stays within this process"):
        await connected(URL, ssl=ssl.create_default_context())
    with pytest.raises(UrlError, match="unknown option 'cert'; memory has no options"):
        async with listening(f"{URL}?cert=x"):
            pass
