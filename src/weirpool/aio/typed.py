"""Typed handlers: their requests are decoded, and their responses encoded."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterable, Mapping
from functools import lru_cache, partial
from types import GeneratorType
from typing import Any, Final

from ..connection import Connection
from ..errors import ApplicationError, FrameError, Invalid, LocalError, Mismatch
from ..functions import is_async
from ..kinds import Kind
from ..payload import MetadataPush, Payload, PayloadRun
from ..protocols import data_mime, spec_of
from ..schema.converter import INVALID_REQUEST, Converter, problems_in_json, validation_extras
from ..schema.formats import JSON, KNOWN, Format, format_of
from ..schema.named import TypedError
from .annotations import ITEMS, REQUEST, Types, arguments_of, takes_payload
from .handlers import Handler, close_items
from .surrounding import surrounding_of

__all__ = ["TypedHandler", "each", "each_async"]

AS_IT_IS: Final = (Payload, MetadataPush, PayloadRun)
"""Results of typed handlers that are not encoded."""


class TypedHandler(Handler):
    """A handler that receives and returns values, not bytes. It must be bound to a connection before it is called.

    Raises:
        LocalError: One of its types cannot be decoded.

    """

    __slots__ = (
        "_around",
        "_begin",
        "_encode",
        "_init",
        "_items",
        "_raw",
        "_takes_items",
        "_takes_request",
        "_write",
        "_written",
    )

    def __init__(self, function: Callable[..., Any], kind: Kind, route: str, types: Types) -> None:
        super().__init__(_unbound, kind, route, types)
        surrounding = surrounding_of(function)
        function = function if surrounding is None else surrounding.handler
        self._around = None if surrounding is None else surrounding.around
        self._written = function
        self._init = self._converter("request", types.init)
        self._items = self._converter("items", types.request)
        # A JSON Schema of responses is only exported.
        answer = self._converter("response", None if isinstance(types.response, Mapping) else types.response)
        self._write = Converter.encode if answer is None else answer.write
        for error in types.errors:
            if isinstance(error, type) and issubclass(error, TypedError):
                self._converter(f"error {error.__name__}", error.extras_type())
        arguments = arguments_of(function, kind)
        self._takes_request, self._takes_items = REQUEST in arguments, ITEMS in arguments
        # The handler receives the Payload itself, whose data must match the schema.
        self._raw = takes_payload(function)
        # A coroutine function is called only where its result is awaited.
        self._begin = self._begin_later if is_async(function) else self._begin_now
        self._encode = self._encoded_items if kind.answers_items else self._encoded

    def _converter(self, part: str, wanted: Any) -> Converter | None:
        """Return the converter of a part of its data; None if the type is unknown."""
        try:
            return None if wanted is None else Converter(wanted)
        except LocalError as error:
            raise LocalError(f"the {part} of {self.name}: {error}") from None

    def bound(self, connection: Connection) -> Handler:
        """Return the handler for the requests of one connection."""
        begin: Callable[..., Any] = partial(self._begin, connection)
        if self._around is not None:
            begin = self._around(begin, partial(self._nothing, connection))
        handler = Handler(begin, self.kind, "", self.types)
        handler.name = self.name
        if self._init is not None:
            handler.measure = partial(_memory, connection)
        return handler

    def _nothing(self, connection: Connection, payload: Payload) -> Payload:
        """Return the answer to a call that is not passed to the handler."""
        return Payload() if self.kind is Kind.FIRE else Payload(Converter.encode(_format(connection, payload), None))

    def _begin_now(self, connection: Connection, payload: Payload, *more: Any) -> Any:
        form, arguments = self._arguments(connection, payload, more)
        result = self._written(*arguments)
        cls: Any = type(result)
        if _may_be_awaited(cls) and inspect.isawaitable(result):
            if not self.kind.answers_items or not isinstance(result, AsyncIterable):
                return self._awaited(form, result)
        return self._encode(form, result)

    async def _begin_later(self, connection: Connection, payload: Payload, *more: Any) -> Any:
        form, arguments = self._arguments(connection, payload, more)
        # The decoded value replaces it while the handler runs.
        del payload
        return self._encode(form, await self._written(*arguments))

    async def _awaited(self, form: Format, result: Awaitable[Any]) -> Any:
        return self._encode(form, await result)

    # Requests.

    def _arguments(
        self, connection: Connection, payload: Payload, more: tuple[Any, ...]
    ) -> tuple[Format, tuple[Any, ...]]:
        """Return the format of the data, and the arguments of the function; `more` begins with the items, if any."""
        form = _format(connection, payload)
        request: Any = payload
        if self._init is not None:
            value = _decoded(self._init, form, payload, connection)
            request = payload if self._raw else value
        if self.kind.sends_items:
            if not self._takes_items:
                more = more[1:]
            elif self._items is not None:
                more = (_decoded_items(self._items, form, more[0], connection), *more[1:])
        return form, (request, *more) if self._takes_request else more

    # Responses.

    def _encoded(self, form: Format, value: Any) -> Any:
        if type(value) in AS_IT_IS:
            return value
        return Payload() if self.kind is Kind.FIRE else Payload(self._write(form, value))

    def _encoded_items(self, form: Format, items: Any) -> Any:
        encode = partial(self._encoded_item, form)
        if isinstance(items, AsyncIterable):
            return each_async(encode, items)
        # The pump rejects a result that is not iterable, or is a single item.
        single = not isinstance(items, Iterable) or isinstance(items, str | bytes | Payload | PayloadRun)
        return items if single else each(encode, items)

    def _encoded_item(self, form: Format, item: Any) -> Any:
        # The items of a record batch are encoded already. A yielded error is sent as one, or ends the stream.
        is_whole = isinstance(item, Exception) or hasattr(item, "__arrow_c_array__")
        return item if is_whole else self._encoded(form, item)


def _unbound(*arguments: Any) -> Any:
    raise LocalError("a typed handler was called before it was bound to a connection; call Handler.bound() first")


@lru_cache(maxsize=1_024)
def _may_be_awaited(cls: type) -> bool:
    """Return False if instances of a class cannot be awaitable; this saves the slow `isawaitable`."""
    return issubclass(cls, (Awaitable, GeneratorType))


def each(convert: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Any, None, None]:
    """Yield the result of `convert` for each item, and close `items` at the end."""
    try:
        for item in items:
            yield convert(item)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


async def each_async(convert: Callable[[Any], Any], items: AsyncIterable[Any]) -> AsyncGenerator[Any, None]:
    """Yield the result of `convert` for each item, and close `items` at the end."""
    try:
        async for item in items:
            yield convert(item)
    finally:
        await close_items(items)


def _format(connection: Connection, payload: Payload) -> Format:
    """Return the format of a request's data, which its items and responses also use.

    Raises:
        Invalid: The format is unknown.

    """
    try:
        mime = data_mime(connection, payload.metadata)
    except FrameError as error:
        raise Invalid(message=f"the metadata is not valid composite metadata: {error}") from None
    form = format_of(mime)
    if form is None:
        raise _invalid(connection, JSON, Mismatch(f"unknown data MIME type {mime!r}; use {KNOWN}"))
    return form


def _memory(connection: Connection, payload: Payload) -> int:
    """Return the memory that the decoded data of a request takes, of which its handler may hold all."""
    try:
        return _format(connection, payload).memory(payload.data)
    except ApplicationError:
        return 0


def _decoded(converter: Converter, form: Format, payload: Payload, connection: Connection) -> Any:
    try:
        return converter.decode(form, payload.data)
    except Mismatch as error:
        raise _invalid(connection, form, error) from None


async def _decoded_items(
    converter: Converter, form: Format, items: AsyncIterable[Payload], connection: Connection
) -> AsyncGenerator[Any, None]:
    async for payload in items:
        value = _decoded(converter, form, payload, connection)
        # The decoded value replaces it while the handler uses it.
        del payload
        yield value


def _invalid(connection: Connection, form: Format, error: Mismatch) -> ApplicationError:
    """Return the error to send to a peer whose data does not match its type."""
    message = f"the data does not match its schema: {error}"
    if not spec_of(connection.protocol).string_codes:
        return Invalid(message=message, data=problems_in_json(error))
    # River, Clients, servers, and RPCs: INVALID_REQUEST; the extras are those of the reference implementation.
    return Invalid(INVALID_REQUEST, message, form.encode(validation_extras(error)))
