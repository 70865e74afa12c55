"""Recorded sessions in every dialect, and mutations of their bytes."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.builds import Build
from tests.sim.pair import Pair

DIALECTS = ("rsocket-1.0", "reactivesocket-0.2", "reactivesocket-0.0")
WORDS = (b"\x00", b"\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff" * 8, b"\x00\x00\x00", b"\x00\x00\x01")
MOST = 3_000


def say(build: Build, client: Any, dialect: str) -> list[int]:
    """Open streams of all kinds that the dialect supports, and return their ids."""
    kinds, payload = build.module("weirpool.kinds").Kind, build.module("weirpool.payload").Payload
    streams = [client.open(kinds.CALL, "call", payload(b"q" * 40)), client.open(kinds.STREAM, "stream", payload(), 5)]
    if dialect != "reactivesocket-0.0":
        streams.append(client.open(kinds.CHANNEL, "channel", payload(b"first" * 60), 5))
    client.open(kinds.FIRE, "fire", payload(b"x"))
    return streams


def recorded(build: Build, dialect: str) -> tuple[bytes, bytes]:
    """Return the output of a client and its server in a session with all kinds of frames."""
    payload = build.module("weirpool.payload").Payload
    lease = build.module("weirpool.leases").FixedLease(100, 60.0)
    limits = {"fragment_bytes": 64}
    pair = Pair(build, dialect=dialect, client={**limits, "lease": True}, server={**limits, "lease": lease})
    streams = say(build, pair.client, dialect)
    pair.drive()
    ours = [event.stream_id for event in pair.events("server", "Requested") if event.credit]
    pair.server.send(ours[0], payload(b"answer" * 30, b"metadata"), True)
    for stream in ours[1:]:
        for number in range(4):
            pair.server.send(stream, payload(b"%d" % number))
        pair.server.request(stream, 4)
    pair.drive()
    for stream in streams[2:]:
        pair.client.send(stream, payload(b"up" * 50))
        pair.client.send(stream, payload(b"last"), True)
    pair.client.request(streams[1], 3)
    pair.client.push(b"pushed")
    pair.drive()
    pair.server.fail(ours[-1], build.module("weirpool.errors").ApplicationError(0x301, "no"))
    pair.client.cancel(streams[1])
    pair.advance(45.0)
    return pair.client_sent, pair.server_sent


def mutated(data: bytes, rng: Random) -> bytes:
    """Return `data` with some bytes changed, moved, duplicated, removed or truncated."""
    octets = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(octets) + 1)
        size = rng.choice((1, 1, 2, 4, 9, 30))
        what = rng.randrange(7)
        if what == 0 and at < len(octets):
            octets[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            octets[at:at] = rng.choice(WORDS)
        elif what == 2:
            word = rng.choice(WORDS)
            octets[at : at + len(word)] = word
        elif what == 3:
            del octets[at : at + size]
        elif what == 4:
            other = rng.randrange(len(octets) + 1)
            octets[at:at] = octets[other : other + 4 * size]
        elif what == 5:
            octets[at : at + size] = rng.randbytes(size)
        elif rng.randrange(8) == 0:
            del octets[at:]
    return bytes(octets[:MOST])


def reframed(data: bytes, prefix: int, rng: Random) -> bytes:
    """Return `data` with whole frames changed, moved, duplicated or removed; their lengths stay valid."""
    frames: list[bytes] = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + prefix], "big") + (prefix if prefix == 3 else 0)
        frames.append(data[at : at + size])
        at += size
    for _ in range(rng.choice((1, 2, 4, 8))):
        index = rng.randrange(1, len(frames))
        what = rng.randrange(4)
        if what == 0:
            body = mutated(frames[index][prefix:], rng)
            frames[index] = (len(body) + (prefix if prefix == 4 else 0)).to_bytes(prefix, "big") + body
        elif what == 1:
            frames.insert(rng.randrange(1, len(frames) + 1), frames[index])
        elif what == 2:
            frames.append(frames.pop(index))
        elif len(frames) > 3:
            del frames[index]
    return b"".join(frames)


def pieces(data: bytes, rng: Random) -> list[bytes]:
    """Split `data` at random positions."""
    found = []
    at = 0
    while at < len(data):
        size = rng.choice((1, 7, 50, 400, MOST))
        found.append(data[at : at + size])
        at += size
    return found
