"""Typed handlers: their requests are decoded, and what they answer is encoded."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterable
from functools import lru_cache, partial
from types import GeneratorType
from typing import Any, Final

from ..connection import Connection
from ..errors import ApplicationError, FrameError, Invalid, LocalError, Mismatch
from ..kinds import Kind
from ..payload import MetadataPush, Payload, PayloadRun
from ..protocols import data_mime, spec_of
from ..schema.converter import INVALID_REQUEST, Converter, problems_in_json, validation_extras
from ..schema.formats import JSON, KNOWN, Format, format_of
from .annotations import Types, takes_payload
from .handlers import Handler, close_items

__all__ = ["TypedHandler", "each", "each_later"]

AS_IT_IS: Final = (Payload, MetadataPush, PayloadRun)
"""What a typed handler may also return or yield: it is encoded already."""


class TypedHandler(Handler):
    """A handler that works with values, not bytes. It can be called when it is bound to a connection.

    Raises:
        LocalError: One of its types cannot be decoded.

    """

    __slots__ = ("_begin", "_encode", "_init", "_items", "_raw", "_written")

    def __init__(self, function: Callable[..., Any], kind: Kind, route: str, types: Types) -> None:
        super().__init__(_unbound, kind, route, types)
        self._written = function
        try:
            self._init = None if types.init is None else Converter(types.init)
            self._items = None if types.request is None else Converter(types.request)
        except LocalError as error:
            raise LocalError(f"{self.name}: {error}") from None
        # A Payload is what the handler wants to see, and its schema is what the payload must match.
        self._raw = takes_payload(function)
        # A coroutine of its user is only made where it is awaited.
        self._begin = self._begin_later if inspect.iscoroutinefunction(function) else self._begin_now
        self._encode = self._encoded_items if kind.answers_items else self._encoded

    def bound(self, connection: Connection) -> Handler:
        """Return the handler for the requests of one connection."""
        handler = Handler(partial(self._begin, connection), self.kind, "", self.types)
        handler.name = self.name
        return handler

    def _begin_now(self, connection: Connection, payload: Payload, items: Any = None) -> Any:
        form, arguments = self._arguments(connection, payload, items)
        result = self._written(*arguments)
        cls: Any = type(result)
        if _may_be_awaited(cls) and inspect.isawaitable(result):
            if not self.kind.answers_items or not isinstance(result, AsyncIterable):
                return self._awaited(form, result)
        return self._encode(form, result)

    async def _begin_later(self, connection: Connection, payload: Payload, items: Any = None) -> Any:
        form, arguments = self._arguments(connection, payload, items)
        return self._encode(form, await self._written(*arguments))

    async def _awaited(self, form: Format, result: Awaitable[Any]) -> Any:
        return self._encode(form, await result)

    # What goes in.

    def _arguments(self, connection: Connection, payload: Payload, items: Any) -> tuple[Format, tuple[Any, ...]]:
        """Return how the data is encoded, and what the function is called with."""
        form = _format(connection, payload)
        request: Any = payload
        if self._init is not None:
            value = _decoded(self._init, form, payload, connection)
            request = payload if self._raw else value
        if not self.kind.sends_items:
            return form, (request,)
        if self._items is not None:
            items = _decoded_items(self._items, form, items, connection)
        return form, (request, items)

    # What comes out.

    def _encoded(self, form: Format, value: Any) -> Any:
        if type(value) in AS_IT_IS:
            return value
        return Payload() if self.kind is Kind.FIRE else Payload(Converter.encode(form, value))

    def _encoded_items(self, form: Format, items: Any) -> Any:
        encode = partial(self._encoded_item, form)
        if isinstance(items, AsyncIterable):
            return each_later(encode, items)
        # What cannot be iterated over, or is one item, is refused where items are sent.
        single = not isinstance(items, Iterable) or isinstance(items, str | bytes | Payload | PayloadRun)
        return items if single else each(encode, items)

    def _encoded_item(self, form: Format, item: Any) -> Any:
        # The items of a record batch are encoded already.
        return item if hasattr(item, "__arrow_c_array__") else self._encoded(form, item)


def _unbound(*arguments: Any) -> Any:
    raise LocalError("a typed handler is called through Service.find of a connection: bind it first")


@lru_cache(maxsize=1_024)
def _may_be_awaited(cls: type) -> bool:
    """Return whether `isawaitable`, which takes long, is to look at what is of this class."""
    return issubclass(cls, (Awaitable, GeneratorType))


def each(convert: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Any, None, None]:
    """Yield each item as `convert` returns it, and close `items` at the end."""
    try:
        for item in items:
            yield convert(item)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


async def each_later(convert: Callable[[Any], Any], items: AsyncIterable[Any]) -> AsyncGenerator[Any, None]:
    """Yield each item as `convert` returns it, and close `items` at the end."""
    try:
        async for item in items:
            yield convert(item)
    finally:
        await close_items(items)


def _format(connection: Connection, payload: Payload) -> Format:
    """Return how the data of a request, and of all that belongs to it, is encoded.

    Raises:
        Invalid: In a way that we do not know.

    """
    try:
        mime = data_mime(connection, payload.metadata)
    except FrameError as error:
        raise Invalid(message=f"the metadata is no composite metadata: {error}") from None
    form = format_of(mime)
    if form is None:
        raise _invalid(connection, JSON, Mismatch(f"data of type {mime!r} is not understood; use {KNOWN}"))
    return form


def _decoded(converter: Converter, form: Format, payload: Payload, connection: Connection) -> Any:
    try:
        return converter.decode(form, payload.data)
    except Mismatch as error:
        raise _invalid(connection, form, error) from None


async def _decoded_items(
    converter: Converter, form: Format, items: AsyncIterable[Payload], connection: Connection
) -> AsyncGenerator[Any, None]:
    async for payload in items:
        yield _decoded(converter, form, payload, connection)


def _invalid(connection: Connection, form: Format, error: Mismatch) -> ApplicationError:
    """Return what a peer is told whose data does not fit."""
    message = f"the data does not match its schema: {error}"
    if not spec_of(connection.protocol).string_codes:
        return Invalid(message=message, data=problems_in_json(error))
    # River, Clients, servers, and RPCs: INVALID_REQUEST; the extras are the reference's.
    return Invalid(INVALID_REQUEST, message, form.encode(validation_extras(error)))
