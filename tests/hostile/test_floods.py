"""Floods over a real socket, by a peer that reads nothing: memory stays constant, and others are served."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.hostile.flooding import MIB, V00, V02, V1, attack
from weirpool.rsocket.dialect import DIALECTS
from weirpool.wire.rsocket.frames import FOLLOWS, IGNORE, NEXT, RESPOND, ExtFrame, Frame, FrameType, KeepaliveFrame

KIB = 1024
IDS = range(1, 2001, 2)
CALL = int(FrameType.REQUEST_RESPONSE)
FIRE = int(FrameType.REQUEST_FNF)
STREAM = int(FrameType.REQUEST_STREAM)
CHANNEL = int(FrameType.REQUEST_CHANNEL)


@dataclass
class Case:
    """A flood.

    Attributes:
        dialect: What the attacker speaks.
        first: What it says once.
        chunk: What it says over and over.
        most: Bytes of that.
        peak: Bytes that the server may hold meanwhile.
        ended: How it ends; see :class:`tests.hostile.flooding.Flood`.
        limits: The server's.

    """

    dialect: str
    first: bytes
    chunk: bytes
    most: int
    peak: int
    ended: tuple[str, ...]
    limits: dict[str, Any] = field(default_factory=dict)


def request(dialect: str, type: int, stream: int, route: bytes, data: bytes = b"", flags: int = 0, n: int = 1) -> bytes:
    return DIALECTS[dialect].codec().request_frame(type, stream, flags, n, route, data)


def item(dialect: str, stream: int, data: bytes, flags: int = NEXT) -> bytes:
    return DIALECTS[dialect].codec().payload_frame(stream, flags, None, data)


def opens(dialect: str, most: int, ended: tuple[str, ...], **limits: Any) -> Case:
    cancel = DIALECTS[dialect].codec().cancel_frame
    chunk = b"".join(request(dialect, CALL, each, b"never", bytes(1000)) + cancel(each) for each in IDS)
    return Case(dialect, b"", chunk, most, most // 2, ended, limits)


def grants(dialect: str) -> Case:
    # Each is answered by an item of 1,000 bytes if the peer reads; otherwise only its demand is counted.
    codec = DIALECTS[dialect].codec()
    first = request(dialect, STREAM, 1, b"count")
    return Case(dialect, first, codec.request_n_frame(1, 1) * 2000, MIB // 2, MIB, ("taken", "stalled"))


def calls(dialect: str) -> Case:
    chunk = b"".join(request(dialect, CALL, each, b"echo", bytes(1000)) for each in IDS)
    # A slow machine still works at some requests when others with their ids arrive, and ignores those: it stops later.
    return Case(dialect, b"", chunk, 512 * MIB, 6 * MIB, ("stalled",))


def large_answers(dialect: str) -> Case:
    chunk = b"".join(request(dialect, CALL, each, b"large") for each in IDS)
    # A thousand answers of 1 MiB: canceled streams must release their output in the session and the link.
    limits = {"max_output_bytes": 8 * MIB, "max_connection_bytes": 32 * MIB}
    return Case(dialect, b"", chunk, MIB, 64 * MIB, ("closed",), limits)


def fires(dialect: str) -> Case:
    chunk = b"".join(request(dialect, FIRE, each, b"log", bytes(1000)) for each in IDS)
    return Case(dialect, b"", chunk, 8 * MIB, 4 * MIB, ("taken",))


def refused(dialect: str) -> Case:
    chunk = b"".join(request(dialect, CALL, each, b"never", bytes(1000)) for each in IDS)
    limits = {"max_streams": 10}
    return Case(dialect, b"", chunk, 8 * MIB, 4 * MIB, ("taken", "stalled"), limits)


def tiny_fragments(dialect: str, data: bytes, peak: int, **limits: Any) -> Case:
    first = item(dialect, 1, b"")
    if dialect != V00:
        first = request(dialect, CALL, 1, b"", flags=FOLLOWS)
    chunk = item(dialect, 1, data, NEXT | FOLLOWS) * 2000
    return Case(dialect, first, chunk, 512 * KIB, peak, ("taken", "closed"), limits)


def fragments_on_many_streams(dialect: str) -> Case:
    first = b"".join(request(dialect, CALL, each, b"", flags=FOLLOWS) for each in IDS)
    chunk = b"".join(item(dialect, each, bytes(10 * KIB), NEXT | FOLLOWS) for each in IDS)
    limits = {"max_reassembly_bytes": 4 * MIB}
    return Case(dialect, first, chunk, 40 * MIB, 10 * MIB, ("taken", "closed"), limits)


def keepalives(dialect: str) -> Case:
    chunk = DIALECTS[dialect].codec().frame(KeepaliveFrame(RESPOND, 0, bytes(16 * KIB))) * 20
    return Case(dialect, b"", chunk, 64 * MIB, 6 * MIB, ("stalled",))


def pushes(dialect: str) -> Case:
    chunk = DIALECTS[dialect].codec().frame(Frame(FrameType.METADATA_PUSH, 0, 0, 0, bytes(16 * KIB))) * 20
    return Case(dialect, b"", chunk, 32 * MIB, 4 * MIB, ("taken",))


def extensions(dialect: str) -> Case:
    chunk = DIALECTS[dialect].codec().frame(ExtFrame(0, 1, bytes(4 * MIB), IGNORE))
    return Case(dialect, b"", chunk, 128 * MIB, 24 * MIB, ("taken", "closed"))


def strays(dialect: str) -> Case:
    return Case(dialect, b"", item(dialect, 77, bytes(1000)) * 500, 8 * MIB, 2 * MIB, ("taken",))


def junk(dialect: str) -> Case:
    return Case(dialect, b"", b"\xff\xfe\xfd" * 20_000, 64 * MIB, 36 * MIB, ("closed",))


CASES = {
    # THREATS 36
    "opens and cancels 1.0": opens(V1, 8 * MIB, ("taken",)),
    "opens and cancels 0.2": opens(V02, 8 * MIB, ("taken",)),
    "opens and cancels 0.0": opens(V00, 8 * MIB, ("taken",)),
    # THREATS 40
    "REQUEST_N(1) 1.0": grants(V1),
    "REQUEST_N(1) 0.2": grants(V02),
    "REQUEST_N(1) 0.0": grants(V00),
    # THREATS 41
    "calls 1.0": calls(V1),
    "calls 0.2": calls(V02),
    "calls 0.0": calls(V00),
    "large answers": large_answers(V1),
    "fires": fires(V1),
    "requests that are refused": refused(V1),
    # THREATS 47
    "fragments of 1 byte 1.0": tiny_fragments(V1, b"x", 400 * KIB, max_fragments=2_000),
    "fragments of 1 byte 0.2": tiny_fragments(V02, b"x", 400 * KIB, max_fragments=2_000),
    # THREATS 48. A read of 256 KiB waits for its turn.
    "empty fragments 1.0": tiny_fragments(V1, b"", 556 * KIB),
    "empty fragments 0.2": tiny_fragments(V02, b"", 556 * KIB),
    # THREATS 49
    "fragments on 1,000 streams 1.0": fragments_on_many_streams(V1),
    "fragments on 1,000 streams 0.2": fragments_on_many_streams(V02),
    # THREATS 53
    "KEEPALIVE 1.0": keepalives(V1),
    "KEEPALIVE 0.2": keepalives(V02),
    "METADATA_PUSH 1.0": pushes(V1),
    "METADATA_PUSH 0.2": pushes(V02),
    "METADATA_PUSH 0.0": pushes(V00),
    # THREATS 14
    "EXT 1.0": extensions(V1),
    "EXT 0.2": extensions(V02),
    "EXT 0.0": extensions(V00),
    # THREATS 42
    "strays 1.0": strays(V1),
    "strays 0.2": strays(V02),
    "strays 0.0": strays(V00),
    # THREATS 10
    "junk": junk(V1),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_flood_uses_no_memory_and_others_are_served(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    async with attack(case.dialect, **case.limits) as attacker:
        if case.first:
            await attacker.say(case.first)
        flood = await attacker.flood(case.chunk, case.most)
        assert flood.ended in case.ended
        assert flood.peak < case.peak
    # Nothing is written to a closed connection, and a flood of frames causes no flood of log lines.
    assert len(caplog.records) < 20
