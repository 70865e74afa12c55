"""River's envelope, held to its grammar: whatever a row says, both decoders must do.

Every input is derived from the table, with the verdict that the table gives. The general decoder must agree with the
verdict. The compiled scanner may leave an input to the general one; what it accepts must be accepted, with the same
fields, and it must accept what ordinary peers write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import msgspec
import pytest

from tests.builds import Build
from weirpool.wire.river.grammar import BODY_DEPTH, FIELDS, MAX_ID, MAX_NUMBER, REQUIRED, RESULT_DEPTH, Field, Type

ABSENT = object()


class Literal(bytes):
    """An encoded value that no encoder would write."""


@dataclass(frozen=True)
class Case:
    """An input that the table derives.

    Attributes:
        name: What it is about.
        fields: Names and values in order; a name may stand there twice.
        accepted: The verdict: whether it is an envelope.
        usable: Whether its payload is one; a payload that is none costs the stream only.
        usual: Whether peers write such messages all the time, so that the scanner must read it.
        results: Whether its payload may be a result.

    """

    name: str
    fields: tuple[tuple[str, Any], ...]
    accepted: bool
    usable: bool = True
    usual: bool = False
    results: bool = False


def nested(levels: int, codec: str) -> Literal:
    """Return nested empty arrays."""
    if codec == "json":
        return Literal(b"[" * levels + b"null" + b"]" * levels)
    return Literal(b"\x91" * levels + b"\xc0")


def values_of(field: Field, codec: str) -> Iterator[tuple[str, Any, bool, bool]]:
    """Yield boundary values of a type: a description, the value, whether it is valid, and whether it is usual."""
    if field.type is Type.ID:
        yield from (("short", "x", True, True), ("empty", "", True, True), ("wide", "é\U0001f600", True, True))
        yield from (("longest", "x" * MAX_ID, True, True), ("too long", "x" * (MAX_ID + 1), False, False))
        yield from (("longest wide", "é" * MAX_ID, True, False), ("escaped", 'a"\\\n\0', True, False))
        yield from ((f"of type {type(value).__name__}", value, False, False) for value in (1, None, True, [], {}))
        bad = b'"\xff"' if codec == "json" else b"\xa1\xff"
        yield "no UTF-8", Literal(bad), False, False
    elif field.type is Type.NUMBER:
        yield from (
            (str(value), value, True, True) for value in (0, 1, 127, 128, 255, 256, 65_536, 1 << 32, MAX_NUMBER)
        )
        yield from ((str(value), value, True, False) for value in (0.0, 3.0, float(1 << 40)))
        yield from ((str(value), value, False, False) for value in (-1, MAX_NUMBER + 1, 1 << 63, 0.5, 2.0**53, -1.0))
        yield from ((f"of type {type(value).__name__}", value, False, False) for value in ("1", None, True, [], {}))
        if codec == "json":
            yield from (
                (text, Literal(text.encode()), False, False) for text in ("NaN", "01", "1.", "-", "1e400", "9" * 5_000)
            )
            yield from ((text, Literal(text.encode()), True, False) for text in ("1e2", "1.0", "-0"))
        else:
            yield "not a number", float("nan"), False, False
            yield "wide", Literal(b"\xcf" + bytes(7) + b"\1"), True, True
            yield "signed", Literal(b"\xd3" + bytes(7) + b"\1"), True, False
    elif field.type is Type.OBJECT:
        yield from (("empty", {}, True, True), ("usual", {"traceparent": "00-1"}, True, True))
        yield from ((f"of type {type(value).__name__}", value, False, False) for value in (1, None, True, [], "x"))
        open_, close = (b'{"a":', b"}") if codec == "json" else (b"\x81\xa1a", b"")
        for levels, fits in ((126, True), (127, False)):
            yield f"{levels} levels deep", Literal(open_ + nested(levels, codec) + close), fits, False


def payloads(codec: str) -> Iterator[tuple[str, Any, bool, bool, bool]]:
    """Yield payloads: a description, the value, whether it is valid, usual, and with results."""
    for value in (None, True, 0, -5, 1.5, "x", "é", [], {}, [1, {"a": ["b"]}], {"ok": True, "payload": {"n": 1}}):
        yield from ((f"payload {value!r}", value, True, True, results) for results in (False, True))
    yield "payload of BODY_DEPTH", nested(BODY_DEPTH, codec), True, True, False
    yield "payload beyond BODY_DEPTH", nested(BODY_DEPTH + 1, codec), False, False, False
    yield "payload of RESULT_DEPTH", nested(RESULT_DEPTH, codec), True, False, True
    yield "payload beyond RESULT_DEPTH", nested(RESULT_DEPTH + 1, codec), False, False, True
    if codec == "json":
        for bad in (b'"\xff"', b"nul", b"[1,]", b"01", b"NaN", b'{"a"}', b'"\x01"', b'"\\x"'):
            yield f"payload {bad!r}", Literal(bad), False, False, False
    else:
        for bad in (b"\xc1", b"\xa1\xff", b"\xd4\0\x90"):
            yield f"payload {bad!r}", Literal(bad), False, False, False
        yield "payload with a time", Literal(b"\xd6\xff\xff\xff\xff\xff"), True, True, False
        yield "payload with big integer", Literal(b"\xc7\x03\0\xa2-1"), True, True, False


def usual(field: Field) -> Any:
    """Return a usual value of a field."""
    return {Type.ID: "x", Type.NUMBER: 7, Type.OBJECT: {"a": "b"}, Type.BODY: {"n": 1}}[field.type]


NEEDED = tuple((field.name, usual(field)) for field in FIELDS if field.required)
ALL = tuple((field.name, usual(field)) for field in FIELDS)


def changed(name: str, value: Any) -> tuple[tuple[str, Any], ...]:
    """Return all fields with one of them changed, or without it."""
    return tuple((each, value if each == name else old) for each, old in ALL if each != name or value is not ABSENT)


def cases(codec: str) -> Iterator[Case]:
    """Yield the inputs that the table derives for a codec."""
    yield Case("required fields only", NEEDED, True, usual=True)
    yield Case("all fields", ALL, True, usual=True)
    yield Case("all fields backwards", ALL[::-1], True, usual=True)
    for order in list(permutations(NEEDED))[::5_003]:
        yield Case(f"order {[name for name, _ in order]}", order, True, usual=True)
    yield Case("a field that is unknown", (*ALL, ("future", [1])), True)
    yield Case("no fields", (), False)
    for field in FIELDS:
        yield Case(f"{field.name} absent", changed(field.name, ABSENT), not field.required, usual=not field.required)
        yield Case(f"{field.name} twice", (*ALL, (field.name, usual(field))), False)
        for about, value, fits, is_usual in values_of(field, codec):
            yield Case(f"{field.name} {about}", changed(field.name, value), fits, usual=is_usual)
    for about, value, usable, is_usual, results in payloads(codec):
        yield Case(about, changed("payload", value), True, usable, is_usual, results)


def written(fields: tuple[tuple[str, Any], ...], codec: str) -> bytes:
    """Return an encoded envelope with these fields."""

    def value(each: Any) -> bytes:
        if isinstance(each, Literal):
            return bytes(each)
        if codec == "msgpack":
            return msgspec.msgpack.encode(each)
        return json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode()

    if codec == "json":
        return b"{" + b",".join(value(name) + b":" + value(each) for name, each in fields) + b"}"
    return bytes([0x80 | len(fields)]) + b"".join(value(name) + value(each) for name, each in fields)


CASES = [(codec, case) for codec in ("json", "msgpack") for case in cases(codec)]
IDS = [f"{codec} {case.name}"[:60] for codec, case in CASES]


class Decoders:
    """The decoder and the scanner of one build, for one codec."""

    def __init__(self, build: Build, codec: str) -> None:
        self._scan = build.module("weirpool.wire.river.scanning").scan
        self.codec = build.module("weirpool.wire.river.codec").CODECS[codec]
        self._error = build.module("weirpool.errors").FrameError

    def general(self, data: bytes, results: bool) -> Any:
        """Return the general decoder's result for `data`; None if it rejects it."""
        try:
            return self.codec.decode_any(data, results)
        except self._error:
            return None

    def fast(self, data: bytes, results: bool) -> Any:
        """Return the scanner's result for `data` in the middle of a buffer; None if it does not accept it."""
        return self._scan(b'"}' + data + b'"}', 2, 2 + len(data), self.codec.is_json, results)

    def read(self, message: Any) -> list[Any]:
        """Return the fields of a message, with the complete payload of a result."""
        found = [getattr(message, field.attribute) for field in FIELDS if field.type is not Type.BODY]
        inner = message.ok_payload
        return [*found, message.payload if inner is None else self.codec.before + inner + self.codec.after]


@pytest.mark.parametrize(("codec", "case"), CASES, ids=IDS)
def test_both_decoders_follow_the_table(build: Build, codec: str, case: Case) -> None:
    decoders = Decoders(build, codec)
    data = written(case.fields, codec)
    message = decoders.general(data, case.results)
    assert (message is not None) is case.accepted
    if message is not None:
        assert (message.fault is None) is case.usable
    fast = decoders.fast(data, case.results)
    if fast is not None:
        assert case.accepted and case.usable
        assert decoders.read(fast) == decoders.read(message)
    if case.usual:
        assert (fast is not None) is (build.name == "compiled")


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("fields", [NEEDED, ALL, ALL[::-1]], ids=["required", "all", "backwards"])
def test_truncated_messages_are_refused(build: Build, codec: str, fields: tuple[tuple[str, Any], ...]) -> None:
    decoders = Decoders(build, codec)
    data = written(fields, codec)
    for end in range(len(data)):
        for part in (data[:end], data[end + 1 :], data[:end] + data[end + 1 :]):
            fast, message = decoders.fast(part, False), decoders.general(part, False)
            # If the scanner accepts changed bytes, the general decoder must agree.
            if fast is not None:
                assert decoders.read(fast) == decoders.read(message)
        assert decoders.general(data[:end], False) is None
        assert decoders.fast(data[:end], False) is None


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_changed_byte_is_decoded_alike_by_both(build: Build, codec: str) -> None:
    decoders = Decoders(build, codec)
    data = bytearray(written(ALL, codec))
    for at in range(len(data)):
        kept = data[at]
        for value in (0, 0x20, 0x22, 0x5C, 0x7D, 0x80, 0x91, 0xC1, 0xD9, 0xDE, 0xFF, kept ^ 1):
            data[at] = value
            fast = decoders.fast(bytes(data), False)
            if fast is not None:
                message = decoders.general(bytes(data), False)
                assert message.fault is None and decoders.read(fast) == decoders.read(message)
        data[at] = kept


def test_rows_are_in_the_order_of_the_arguments(build: Build) -> None:
    message_type = build.module("weirpool.wire.river.message").Message
    arguments = ["id", "from", "to", 3, 4, "stream", 6, b"payload", "service", "procedure", {"tracing": ""}]
    message = message_type(*arguments)
    assert [getattr(message, field.attribute) for field in FIELDS] == arguments
    assert REQUIRED == 8
    assert [field.required for field in FIELDS] == [True] * 8 + [False] * 3
