"""Connections over real sockets with an invalid start, or none: they end and release their resources."""

from __future__ import annotations

import asyncio
import logging
import tracemalloc

import pytest

import weirpool
from tests.hostile.flooding import MIB, V00, V02, V1, Attack, attack, make_service, opening
from tests.waiting import until
from weirpool import SessionError, Settings
from weirpool.rsocket.dialect import DIALECTS
from weirpool.urls import fitting

ALL = pytest.mark.parametrize("dialect", [V1, V02, V00])


async def nothing_left(attacker: Attack) -> None:
    """Wait until the server has removed the attacker's connection."""
    server = attacker.server
    await until(lambda: not server._drivers and not server._arrivals and not server._limits)


def goodbye(dialect: str) -> bytes:
    """Return the start of the last frame to a peer that violated the protocol, after its length."""
    return bytes.fromhex("0000000200000000000000000000 0001" if dialect == V00 else "000000002c0000000101")


@ALL
async def test_a_first_frame_byte_by_byte_is_not_waited_for(dialect: str) -> None:
    # THREATS 1
    async with attack(dialect, set_up=False, first_frame_timeout=0.05) as attacker:
        for octet in opening(DIALECTS[dialect])[:5]:
            await attacker.say(bytes((octet,)))
        assert await attacker.heard() == b""
        await nothing_left(attacker)


@ALL
async def test_incomplete_first_frame_times_out(dialect: str) -> None:
    # THREATS 1: the dialect is already known, and the answer uses it.
    async with attack(dialect, set_up=False, first_frame_timeout=0.05) as attacker:
        await attacker.say(opening(DIALECTS[dialect])[:20])
        assert b"no whole first frame came" in await attacker.heard()
        await nothing_left(attacker)


@ALL
@pytest.mark.parametrize("length", [0, 1, 5])
async def test_a_length_that_no_header_fits_is_answered_and_closed(dialect: str, length: int) -> None:
    # THREATS 2, 5
    async with attack(dialect) as attacker:
        await attacker.say(length.to_bytes(4 if dialect == V00 else 3, "big") + bytes(100))
        heard = await attacker.heard()
        assert goodbye(dialect) in heard
        attacker.sock.close()
        await nothing_left(attacker)


@ALL
async def test_announced_frame_uses_no_memory_and_times_out(dialect: str) -> None:
    # THREATS 3
    # The set-up has the keepalive lifetime, in the dialects that support it.
    async with attack(dialect, lifetime=0.05, idle_timeout=0.05) as attacker:
        tracemalloc.start()
        try:
            await attacker.say((b"\x00" if dialect == V00 else b"") + b"\xff\xff\xff" + bytes(10))
            assert b"nothing received from the peer" in await attacker.heard()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < MIB
        attacker.sock.close()
        await nothing_left(attacker)


@pytest.mark.parametrize("length", [b"\x80\x00\x00\x10", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"])
async def test_a_length_with_the_reserved_bit_or_above_the_limit_is_refused(length: bytes) -> None:
    # THREATS 4: the bit is ignored, and the frame of zeros that follows is no frame.
    async with attack(V00) as attacker:
        await attacker.say(length + bytes(12))
        assert goodbye(V00) in await attacker.heard()


JUNK = {
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "an HTTP request"),
    "TLS": (bytes.fromhex("160301020001000001fc0303") + bytes(500), "a TLS ClientHello"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2"),
    "noise": (bytes(range(255, 0, -1)), "not RSocket"),
    "zeros": (bytes(200), "not RSocket"),
}


@pytest.mark.parametrize(("junk", "what"), JUNK.values(), ids=JUNK)
async def test_junk_is_refused_without_echo(junk: bytes, what: str, caplog: pytest.LogCaptureFixture) -> None:
    # THREATS 10
    caplog.set_level(logging.INFO)
    async with attack(set_up=False) as attacker:
        await attacker.say(junk)
        assert await attacker.heard() == b""
        attacker.sock.close()
        await nothing_left(attacker)
    (line,) = [record.getMessage() for record in caplog.records if what in record.getMessage()]
    assert len(line) < 200


async def test_self_counting_lengths_are_refused_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    # THREATS 6
    codec = DIALECTS[V1].codec()
    frames = [opening(DIALECTS[V1]), *(codec.request_frame(4, each, 0, 0, b"echo", b"") for each in (1, 3, 5))]
    async with attack(set_up=False) as attacker:
        await attacker.say(b"".join(len(frame).to_bytes(3, "big") + frame[3:] for frame in frames))
        assert b"less than a frame header" in await attacker.heard()


async def test_a_handler_that_raises_keeps_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    # THREATS 46
    codec = DIALECTS[V1].codec()
    async with attack() as attacker:
        await attacker.say(codec.request_frame(4, 1, 0, 0, b"bug", b""))
        heard = await asyncio.get_running_loop().sock_recv(attacker.sock, 65_536)
        assert b"the handler failed" in heard
        assert b"secret" not in heard and b"Traceback" not in heard
    assert "a secret" in caplog.text


@ALL
async def test_a_handler_that_never_ends_is_ended_by_a_cancel(dialect: str) -> None:
    # THREATS 46
    codec = DIALECTS[dialect].codec()
    async with attack(dialect) as attacker:
        await attacker.say(codec.request_frame(4, 1, 0, 0, b"never", b""))
        await until(lambda: attacker.seen == ["begun"])
        await attacker.say(codec.cancel_frame(1))
        await until(lambda: attacker.seen == ["begun", "ended"])
        await until(lambda: not attacker.driver.exchanges.tasks)


@ALL
async def test_handlers_of_a_peer_that_is_gone_are_ended(dialect: str) -> None:
    # THREATS 46
    codec = DIALECTS[dialect].codec()
    async with attack(dialect) as attacker:
        for stream in range(1, 21, 2):
            await attacker.say(codec.request_frame(4, stream, 0, 0, b"never", b""))
        await until(lambda: attacker.seen == ["begun"] * 10)
        attacker.sock.close()
        await until(lambda: attacker.seen == ["begun"] * 10 + ["ended"] * 10)
        await nothing_left(attacker)


@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2"])
async def test_self_counting_lengths_are_served_if_enabled(protocol: str) -> None:
    # THREATS 6: on the same server, a WebSocket's messages have no such length.
    settings = Settings(length_counts_itself=True, fragment_bytes=64_000, close_grace=0.0)
    urls = (f"{protocol}+tcp://127.0.0.1:0", f"{protocol}+ws://127.0.0.1:0")
    async with weirpool.serve(make_service([]), *urls, settings=settings) as server:
        for url in server.urls:
            async with weirpool.connect(url, settings=fitting(settings, url)) as peer:
                for size in (0, 10, 40_000, 300_000):
                    assert (await peer.call("echo", b"x" * size)).data == b"x" * size
                async with peer.stream("count", credit=100) as items:
                    each = aiter(items)
                    taken = [len((await anext(each)).data) for _ in range(1_000)]
                assert taken == [1_000] * 1_000
        port = int(server.urls[0].rpartition(":")[2])
        strict = weirpool.connect(f"{protocol}+tcp://127.0.0.1:{port}")
        with pytest.raises(SessionError):
            async with strict as peer:
                await peer.call("echo", b"x")
