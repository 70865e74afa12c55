"""Values of JSON, MessagePack and CBOR by type. An input begins with a byte for the format and one for the type.

Data that the first attempt reads must be the same when it is read again.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, Literal
from uuid import UUID

import cbor2
import msgspec
from tests.builds import Build
from tests.values import written

from fuzz.targets import Difference

LINES: Final = True
WORDS: Final = (
    b"NaN", b"-Infinity", b"\xef\xbb\xbf", b"\\ud800", b":00.1234567", b"+01[Europe/Paris]", b"1735689599.999999900",
    b"\xd4\x00\x00", b"\xd7\xff", b"\xc7\x0c\xff", b"\xcb\x42\x7a\x21\xea\xa4\x6c\x70\x00", b"\xf7", b"\xd8\x40\x41",
    b"\xd8\x25\x50", b"\xd8\x23\x61a", b"\xd8\x45\x42", b"\xc4\x82\x28\x1b", b"\xfb\x42\x7a\x21\xea\xa4\x6c\x70\x00",
    b'"$b"',
)  # fmt: skip


class Level(enum.IntEnum):
    """Numbers with names."""

    LOW = 1
    HIGH = 2


class Leaf(msgspec.Struct):
    """A record with little."""

    v: int | float | str | None = None
    ts: int = 0


class Record(msgspec.Struct):
    """A record with everything."""

    v: Any = None
    ts: int | None = None
    at: datetime | None = None
    day: date | None = None
    hour: time | None = None
    span: timedelta | None = None
    price: Decimal | None = None
    name: str | None = None
    raw: bytes | None = None
    key: UUID | None = None
    level: Level | None = None
    kind: Literal[5, "x"] | None = None
    leaf: Leaf | None = None
    leaves: list[Leaf] | None = None
    by_id: dict[int, Leaf | None] | None = None
    pair: tuple[int, datetime] | None = None


TYPES: Final = (Record, Any, dict[str, Any], dict[str, Record], list[Leaf | None], Leaf)
JSON: Final = (0, 1, 3)
FULL: Final = {
    "v": 1.5, "ts": 5, "at": "2024-12-31T23:59:59.123456Z", "day": "2024-12-31", "hour": "23:59:59", "span": "PT1S",
    "price": "1.5", "name": "n", "level": 2, "leaf": {"v": 1}, "leaves": [{}], "by_id": {"1": {}},
    "pair": [1, "2024-12-31T00:00:00Z"],
}  # fmt: skip


def readers(build: Build) -> tuple[Any, ...]:
    """Return the readers of all formats, which an input selects by its first byte."""
    json = build.module("weirpool.values.json").JsonReader
    river = [reader for _, _, reader in build.module("weirpool.wire.river.encodings").encodings().values()]
    return (
        json(),
        json(named_numbers=True),
        build.module("weirpool.values.msgpack").MsgpackReader(),
        river[0],
        river[1],
        build.module("weirpool.values.cbor").CborReader(),
    )


def seeds() -> Iterator[bytes]:
    """Yield what libraries have written, and values of all types in each format."""
    for kind in range(len(TYPES)):
        for form in JSON:
            yield bytes((form, kind)) + msgspec.json.encode(FULL)
        yield bytes((2, kind)) + msgspec.msgpack.encode(FULL)
        yield bytes((4, kind)) + msgspec.msgpack.encode({"ts": 1.0, "v": [msgspec.msgpack.Ext(0, b"\x05")]})
        yield bytes((5, kind)) + cbor2.dumps({**FULL, "raw": b"x", "key": UUID(int=5)})
    yield b'\x00\x00{"at":"2024-12-31T23:59:59.9999999+01[Europe/Paris]","price":1.23456789012345678901}'
    yield b'\x01\x00{"v":NaN,"ts":-Infinity,"name":"NaN","x":"\\ud800"}'
    yield b'\x03\x00{"v":{"$t":"AAAA"},"ts":{"$b":"123456789012345678901234567890"}}'
    for form, libraries in ((2, written.MSGPACK), (5, written.CBOR)):
        for items in libraries.values():
            for data in items.values():
                yield bytes((form, 1)) + bytes.fromhex(data)
                yield bytes((form, 5)) + bytes.fromhex(data)


def _decoder(build: Build, data: bytes) -> tuple[Any, bytes]:
    found = readers(build)
    head = data[:2].ljust(2, b"\0")
    decoder = build.module("weirpool.values.decoder").Decoder
    return decoder(found[head[0] % len(found)], TYPES[head[1] % len(TYPES)]), data[2:]


def _attempt(build: Build, decode: Any, data: bytes) -> str:
    # Depth is limited before data is decoded.
    try:
        return repr(decode(data))
    except build.module("weirpool.values.decoder").ERRORS as error:
        return type(error).__name__


def outcome(build: Build, data: bytes) -> object:
    """Return the value that data has."""
    decoder, data = _decoder(build, data)
    if decoder._reader.too_deep(data) >= 0:
        return "too deep"
    return _attempt(build, decoder.decode, data)


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare both attempts."""
    decoder, data = _decoder(build, data)
    if found == "too deep" or (decoder.is_doubtful is not None and decoder.is_doubtful(data)):
        return
    first = _attempt(build, decoder.strict, data)
    if first.endswith("Error"):
        return
    again = _attempt(build, decoder.again, data)
    if again != first:
        raise Difference(f"the first attempt reads {first}, the second {again}")
