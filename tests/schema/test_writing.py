"""Schemas of types; and that what travels is what they say, to a client that is generated from them."""

from __future__ import annotations

import enum
import math
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import ModuleType
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import msgspec
import pytest

import weirpool
from weirpool import Service, Settings
from weirpool.schema.codegen import generate_python
from weirpool.schema.formats import MSGPACK
from weirpool.schema.writing import schema_of


class Side(enum.Enum):
    BID = "bid"
    ASK = "ask"


class Point(NamedTuple):
    x: int
    y: str


class Inner(msgspec.Struct):
    n: int = 1


MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
VALUES: list[tuple[Any, Any]] = [
    (datetime, MOMENT),
    (datetime, MOMENT.replace(tzinfo=None)),
    (datetime, MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))),
    (datetime, datetime(1900, 1, 1, tzinfo=UTC)),
    (datetime | None, MOMENT),
    (list[datetime], [MOMENT]),
    (date, MOMENT.date()),
    (time, time(3, 4, 5, 6)),
    (timedelta, timedelta(days=1, seconds=2, microseconds=3)),
    (UUID, UUID(int=7)),
    (Decimal, Decimal("1.50")),
    (bytes, b"\xff\x00"),
    (set[str], {"a", "b"}),
    (frozenset[int], frozenset({1})),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2)),
    (Point, Point(1, "y")),
    (Side, Side.BID),
    (Literal[1, "a", None], "a"),
    (int, 2**60),
    (int, -(2**53) - 1),
    (float, 1.5),
    (bool, True),
    (None, None),
    (str, "\U0001f600"),
    (dict[str, float], {"a": 1.5}),
    (dict[int, str], {1: "a"}),
    (Inner, Inner(5)),
    (Inner | None, None),
    (int | str | list[bytes], [b"a"]),
    (Any, {"x": [None, 1]}),
]
URLS = (
    "river+memory://values?codec=json",
    "river+memory://values?codec=msgpack",
    "rsocket+memory://values json",
    "rsocket+memory://values msgpack",
)


def service_of() -> tuple[Service, Any]:
    """Return a service with a field of each type, and a value."""
    fields = [(f"f{number}", each) for number, (each, _) in enumerate(VALUES)]
    everything = msgspec.defstruct("Everything", fields)
    service = Service()
    service.call("all.same", init=everything, response=everything)(lambda init: init)
    return service, everything(*[value for _, value in VALUES])


@pytest.mark.parametrize("url", URLS)
async def test_every_field_type_travels_as_its_schema_says(url: str) -> None:
    service, wanted = service_of()
    client: Any = ModuleType("generated_values")
    sys.modules[client.__name__] = client
    place, _, form = url.partition(" ")
    settings = Settings(data_mime=f"application/{form}") if form else Settings()
    try:
        exec(generate_python(service.schema()), vars(client))
        sent = msgspec.convert(msgspec.json.decode(msgspec.json.encode(wanted)), client.Everything, strict=False)
        async with weirpool.serve(service, place), weirpool.connect(place, settings=settings) as peer:
            answer = await client.All(peer).same(sent)
        assert answer == sent
        assert msgspec.json.decode(msgspec.json.encode(answer)) == msgspec.json.decode(msgspec.json.encode(wanted))
    finally:
        del sys.modules[client.__name__]


def test_times_are_texts_in_msgpack() -> None:
    plain = msgspec.msgpack.decode(MSGPACK.encode({"at": [MOMENT], "data": b"\xd6\xff"}))
    assert plain == {"at": ["2026-01-02T03:04:05.678901Z"], "data": b"\xd6\xff"}


def test_names_defaults_and_limits_are_written() -> None:
    sized = Annotated[bytes, msgspec.Meta(max_length=3, description="Few.")]
    wanted = msgspec.defstruct("Page[int]", [("data", sized), ("side", Side, Side.BID), ("many", list[int], [])])
    schema = schema_of(wanted)
    assert schema["title"] == "Page[int]"
    assert schema["required"] == ["data"]
    assert schema["properties"] == {
        "data": {"type": "Uint8Array", "maxByteLength": 3, "description": "Few."},
        "side": {"enum": ["ask", "bid"], "title": "Side", "default": "bid"},
        "many": {"type": "array", "items": {"type": "integer"}, "default": []},
    }


def test_a_default_that_json_does_not_have_is_left_out() -> None:
    wanted = msgspec.defstruct("Limits", [("low", float), ("high", float, math.inf)])
    schema = schema_of(wanted)
    assert schema["properties"]["high"] == {"type": "number"}
    assert schema["required"] == ["low"]
