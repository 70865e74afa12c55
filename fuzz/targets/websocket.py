"""WebSocket frames. The first two bytes of an input are the options and the size of pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.builds import Build
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN, Protocol, Side

from fuzz.outcomes import pieces
from fuzz.targets import Difference

LINES: Final = True
MAX_BYTES: Final = 1_000
WIDTH: Final = 3


def seeds() -> Iterator[bytes]:
    """Yield messages, fragments and control frames, from clients and from servers."""
    for masked in (False, True):
        frames = [
            (Opcode.BINARY, b"message", True),
            (Opcode.BINARY, b"x" * 126, True),
            (Opcode.BINARY, b"first", False),
            (Opcode.PING, b"ping", True),
            (Opcode.CONT, b"", False),
            (Opcode.CONT, b"last", True),
            (Opcode.BINARY, bytes(1_001), True),
            (Opcode.CLOSE, b"\x03\xe8bye", True),
        ]
        raw = [bytes(Frame(opcode, raw, fin).serialize(mask=masked)) for opcode, raw, fin in frames]
        for options in (0, 2, 4):
            yield bytes((options | masked, 0)) + b"".join(raw)
            yield bytes((options | masked, 200)) + b"".join(raw)
            yield bytes((options | masked, 1)) + b"".join(raw[:1] + raw[2:6] + raw[7:])


def outcome(build: Build, data: bytes) -> object:
    """Return the messages, and how reading has ended."""
    options, size = (data[0], data[1]) if len(data) > 1 else (0, 0)
    module = build.module("weirpool.transports.websocket_frames")
    reader = module.FrameReader(
        masked=bool(options & 1),
        max_bytes=MAX_BYTES,
        width=WIDTH,
        first_max_bytes=100 if options & 2 else None,
        skip_long=bool(options & 4),
    )
    _check_written(build, data[2:])
    found, pings = b"", []
    for piece in pieces(data[2:], size):
        found += reader.feed(piece)
        while reader.skipped is not None:
            found += b"".join(reader.take_skipped()) + reader.feed(b"")
        if reader.ping is not None:
            pings.append(reader.ping)
            reader.ping = None
    return found, pings, repr(reader.close), repr(reader.violation)


def _check_written(build: Build, messages: bytes) -> None:
    """Check that messages are read as they were written."""
    module = build.module("weirpool.transports.websocket_frames")
    write_run = build.module("weirpool.transports.websocket_runs").write_run
    for masking in (False, True):
        frames, end = write_run(messages, WIDTH, masking)
        read = module.FrameReader(masked=masking, max_bytes=len(messages), width=WIDTH).feed(frames)
        if read != messages[:end]:
            raise Difference(f"{messages[:end]!r} were written, but {read!r} read")


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare the messages of valid input with those that the library `websockets` reads."""
    if len(data) < 2 or data[0] & 6 or found[3] != "None":
        return
    theirs = Protocol(Side.SERVER if data[0] & 1 else Side.CLIENT, state=OPEN, max_size=MAX_BYTES)
    theirs.receive_data(data[2:])
    messages, unfinished = b"", b""
    for event in theirs.events_received():
        if isinstance(event, Frame) and event.opcode in (Opcode.BINARY, Opcode.CONT):
            unfinished += bytes(event.data)
            if event.fin:
                messages += len(unfinished).to_bytes(WIDTH, "big") + unfinished
                unfinished = b""
    if theirs.parser_exc is None and messages != found[0]:
        raise Difference(f"websockets reads {messages!r}, not {found[0]!r}")
