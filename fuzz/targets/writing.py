"""River messages that are written, and read again. An input is numbers, then a body."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from tests.builds import Build

from fuzz.outcomes import attempt
from fuzz.targets import Difference

HEAD: Final = struct.Struct(">BQQB")
CODECS: Final = ("json", "msgpack")
ROUTES: Final = (None, "service.procedure", "a.b.\u20ac", "without")
MAX_NUMBER: Final = 2**53 - 1
MAX_FLAGS: Final = 31


def seeds() -> Iterator[bytes]:
    """Yield messages of all kinds, with small and large numbers."""
    for options in range(32):
        body = msgspec.msgpack.encode({"a": [1]}) if options & 1 else b'{"a":[1]}'
        for number in (0, 127, 128, 65_535, 65_536, 2**32 - 1, 2**32, MAX_NUMBER):
            yield HEAD.pack(options, number, MAX_NUMBER - number, options) + body


def _numbers(data: bytes) -> tuple[int, ...]:
    options, seq, ack, flags = HEAD.unpack(data[: HEAD.size].ljust(HEAD.size, b"\0"))
    # Sessions never count further, and there are five control flags.
    return options, seq & MAX_NUMBER, ack & MAX_NUMBER, flags & MAX_FLAGS


def outcome(build: Build, data: bytes) -> object:
    """Return two messages, of which the second one has another id."""
    options, seq, ack, flags = _numbers(data)
    codec = build.module("weirpool.wire.river.codec").CODECS[CODECS[options & 1]]
    writer = build.module("weirpool.wire.river.writing").Writer(codec, "us", "the peer \u20ac", "tag-")
    name = writer.name(writer.new_id())
    tracing = {"traceparent": "00-1-2-01"} if options & 16 else None
    arguments = (seq, ack, name, flags, data[HEAD.size :], bool(options & 2))
    return [attempt(build, writer.message, *arguments, ROUTES[options >> 2 & 3], tracing) for _ in range(2)]


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare the fields of a message with those that the codec's library reads."""
    if isinstance(found[0], tuple):
        return
    options, seq, ack, flags = _numbers(data)
    read = _unpacked if options & 1 else _parsed
    try:
        body = read(data[HEAD.size :])
    except (ValueError, RecursionError):
        return
    size = int.from_bytes(found[0][:4], "big")
    try:
        message = read(found[0][4:])
    except RecursionError:
        # The body alone was just shallow enough.
        return
    wanted = {
        "id": "tag-2",
        "from": "us",
        "to": "the peer \u20ac",
        "seq": seq,
        "ack": ack,
        "streamId": "tag-1",
        "controlFlags": flags,
    }
    shown = repr({"ok": True, "payload": body} if options & 2 else body)
    wrong = {key: message.get(key) for key, value in wanted.items() if message.get(key) != value}
    if wrong or size != len(found[0]) - 4 or repr(message["payload"]) != shown:
        raise Difference(f"the library reads {message}, not {wanted} and {shown}")


def _parsed(data: bytes) -> Any:
    # As a text, because the library would also accept UTF-16 and a byte order mark, which River does not.
    return json.loads(data.decode())


def _unpacked(data: bytes) -> Any:
    return msgspec.msgpack.decode(data, ext_hook=lambda code, content: (code, bytes(content)))
