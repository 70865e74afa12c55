"""Values in Avro's binary encoding."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from tests.builds import Build

from fuzz.targets import Difference

WORDS: Final = (b"\0", b"\1", b"\2", b"\xff" * 9 + b"\1", b"\x80\x80\0", b"\x04\xc3\xa4")
TYPES: Final[dict[str, Any]] = {
    "number": ["null", "long"],
    "text": "string",
    "array": {"type": "array", "items": ["null", {"type": "map", "values": "double"}]},
    "enum": {"type": "enum", "name": "Letter", "symbols": ["A", "B"]},
    "fixed": {"type": "fixed", "name": "Two", "size": 2},
    "flag": "boolean",
    "raw": "bytes",
    "ratio": "float",
}
SCHEMA: Final = parse_schema(
    {"type": "record", "name": "Event", "fields": [{"name": name, "type": kind} for name, kind in TYPES.items()]}
)


def seeds() -> Iterator[bytes]:
    """Yield records."""
    more = {"enum": "B", "fixed": b"ab", "flag": True, "raw": b"\xff\0", "ratio": 1.5}
    for number, text, array in ((None, "", []), (-(1 << 63), "äöü", [None, {}, {"a": 1.5, "": -0.0}])):
        file = io.BytesIO()
        schemaless_writer(file, SCHEMA, {"number": number, "text": text, "array": array, **more})
        yield file.getvalue()


@cache
def _plan(build: Build) -> Any:
    """Return a plan for the schema."""
    with build.active():
        plans = build.module("weirpool.decoding.avro_plans")
        return plans.record_plan(SCHEMA, SCHEMA, list(TYPES))


def outcome(build: Build, data: bytes) -> object:
    """Return the values of a record, or why it is malformed."""
    plan = _plan(build)
    try:
        return build.module("weirpool.decoding.avro_values").Cursor(data).whole(plan)
    except ValueError as error:
        return type(error).__name__, str(error)


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare the values with those of fastavro, which takes more for valid."""
    if isinstance(found, tuple):
        return
    expected: Any = schemaless_reader(io.BytesIO(data), SCHEMA, None)
    if repr([*expected.values()]) != repr(found):
        raise Difference(f"fastavro reads {[*expected.values()]}, but found was {found}")
