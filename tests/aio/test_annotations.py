from __future__ import annotations

import functools
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow
import pydantic
import pytest

from weirpool import ApplicationError, Items, Kind, LocalError, Payload
from weirpool.aio.annotations import ITEMS, REQUEST, UNTYPED, Types, arguments_of, takes_payload, types_of

if TYPE_CHECKING:
    from elsewhere import Hidden


class Symbol(msgspec.Struct):
    name: str


@dataclass
class Quote:
    price: float


def raw(request: Payload) -> bytes: ...
def bare(request): ...
def anything(request: Any) -> object: ...
def nothing(request: None) -> None: ...
def no_request() -> float: ...
def no_request_or_type(): ...
def no_answer() -> None: ...
def only_raw_items(items: Items) -> bytes: ...
async def load_any(items: AsyncIterator[Any]) -> None: ...
def payload_or_quote(symbol: Symbol) -> Payload | Quote: ...
def payload_or_nothing(symbol: Symbol) -> Payload: ...
def with_errors(symbol: Symbol) -> Iterator[Quote | ApplicationError]: ...
def record_batches(symbol: Symbol) -> Iterator[pyarrow.RecordBatch]: ...
def quoted(symbols: list["Symbol"]) -> "dict[str, Quote]": ...  # noqa: UP037
def model(request: Payload) -> Model: ...


class Model(pydantic.BaseModel):
    pass


class Callable_:
    def __call__(self, symbol: Symbol) -> Quote: ...


def rows(request: Payload) -> Iterator[bytes]: ...
def unknown_answer(request: Payload) -> Hidden: ...
def raw_items(request: Payload, items: Items) -> bytes: ...
def iterated(request: Payload, items: AsyncIterator[Payload]) -> AsyncIterator[Payload]: ...
async def latest(symbol: Symbol) -> Quote: ...
def later(symbol: Symbol) -> Awaitable[Quote]: ...
def answers(request: Payload) -> Quote | None: ...
def live(symbol: Symbol) -> AsyncIterator[Quote]: ...
def at_once(symbol: Symbol) -> list[Quote]: ...
async def load(init: Symbol, items: AsyncIterator[Quote]) -> int: ...
async def only_items(request: Payload, items: AsyncIterable[Quote]) -> str: ...
async def log(symbol: Symbol) -> None:
    """
    Write it down.

    At once.
    """


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (raw, Kind.CALL),
        (bare, Kind.CALL),
        (unknown_answer, Kind.CALL),
        (rows, Kind.STREAM),
        (raw_items, Kind.UPLOAD),
        (iterated, Kind.CHANNEL),
        (lambda request: b"", Kind.FIRE),
        (no_request_or_type, Kind.CALL),
        (no_answer, Kind.FIRE),
        (only_raw_items, Kind.UPLOAD),
        (functools.partial(raw), Kind.CALL),
    ],
)
def test_these_are_untyped(function: Callable[..., Any], kind: Kind) -> None:
    types = types_of(function, kind, UNTYPED)
    assert types[:3] == (None, None, None)
    assert not types.typed


@pytest.mark.parametrize(
    ("function", "kind", "expected"),
    [
        (latest, Kind.CALL, (Symbol, None, Quote)),
        (functools.partial(latest), Kind.CALL, (Symbol, None, Quote)),
        (later, Kind.CALL, (Symbol, None, Quote)),
        (answers, Kind.CALL, (None, None, Quote | None)),
        (live, Kind.STREAM, (Symbol, None, Quote)),
        (at_once, Kind.STREAM, (Symbol, None, Quote)),
        (at_once, Kind.CALL, (Symbol, None, list[Quote])),
        (load, Kind.UPLOAD, (Symbol, Quote, int)),
        (only_items, Kind.UPLOAD, (None, Quote, str)),
        (log, Kind.FIRE, (Symbol, None, None)),
        (anything, Kind.CALL, (Any, None, Any)),
        (nothing, Kind.CALL, (NoneType, None, NoneType)),
        (no_request, Kind.CALL, (None, None, float)),
        (no_answer, Kind.CALL, (None, None, NoneType)),
        (load_any, Kind.UPLOAD, (None, Any, NoneType)),
        (payload_or_quote, Kind.CALL, (Symbol, None, Quote)),
        (payload_or_nothing, Kind.CALL, (Symbol, None, None)),
        (with_errors, Kind.STREAM, (Symbol, None, Quote)),
        (record_batches, Kind.STREAM, (Symbol, None, None)),
        (quoted, Kind.CALL, (list[Symbol], None, dict[str, Quote])),
        (model, Kind.CALL, (None, None, Model)),
        (Callable_(), Kind.CALL, (Symbol, None, Quote)),
    ],
)
def test_these_are_typed(function: Callable[..., Any], kind: Kind, expected: tuple[Any, ...]) -> None:
    types = types_of(function, kind, UNTYPED)
    assert types[:3] == expected
    assert types.typed


def test_given_types_override_annotations() -> None:
    given = Types(int, float, str, (ValueError,))
    assert types_of(load, Kind.UPLOAD, given)[:4] == given[:4]
    assert types_of(raw, Kind.CALL, Types(response={"type": "string"})).typed


def test_the_description_is_the_docstring() -> None:
    assert types_of(log, Kind.FIRE, UNTYPED).description == "Write it down.\n\nAt once."
    assert types_of(raw, Kind.CALL, UNTYPED).description == ""
    assert types_of(functools.partial(raw), Kind.CALL, UNTYPED).description == ""


def hidden(request: Hidden) -> bytes: ...
def hidden_items(request: Payload, items: AsyncIterator[Hidden]) -> bytes: ...
def hidden_answer(symbol: Symbol) -> Hidden: ...
def octets(request: bytes) -> bytes: ...
def octet_items(request: Payload, items: AsyncIterator[bytes]) -> bytes: ...


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (hidden, Kind.CALL, "request as 'Hidden', which cannot be resolved"),
        (hidden_items, Kind.UPLOAD, "items as"),
        (hidden_answer, Kind.CALL, "response as 'Hidden'"),
        (octets, Kind.CALL, "request as bytes; use Payload"),
        (octet_items, Kind.UPLOAD, "items as bytes"),
    ],
)
def test_unusable_annotations_are_rejected(function: Callable[..., Any], kind: Kind, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        types_of(function, kind, UNTYPED)


@pytest.mark.parametrize(
    ("function", "kind", "expected"),
    [
        (latest, Kind.CALL, (REQUEST,)),
        (no_request, Kind.CALL, ()),
        (no_request, Kind.STREAM, ()),
        (load, Kind.UPLOAD, (REQUEST, ITEMS)),
        (load_any, Kind.UPLOAD, (ITEMS,)),
        (only_raw_items, Kind.CHANNEL, (ITEMS,)),
        # Refused elsewhere: one of the two is missing.
        (latest, Kind.UPLOAD, (REQUEST, ITEMS)),
        (no_request, Kind.UPLOAD, (REQUEST, ITEMS)),
        (lambda *all: None, Kind.UPLOAD, (REQUEST, ITEMS)),
        (lambda request=None: None, Kind.CALL, (REQUEST,)),
    ],
)
def test_handlers_take_fewer_arguments(function: Callable[..., Any], kind: Kind, expected: tuple[str, ...]) -> None:
    assert arguments_of(function, kind) == expected


def test_takes_payload_reads_the_annotation() -> None:
    assert takes_payload(raw)
    assert not takes_payload(bare)
    assert not takes_payload(no_request)
    assert not takes_payload(latest)
