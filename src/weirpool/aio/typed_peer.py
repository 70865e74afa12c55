"""Typed peers: requests are encoded, and responses decoded."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from functools import lru_cache, partial
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from ..errors import ApplicationError, LocalError
from ..payload import Payload
from ..schema.converter import Converter
from ..schema.formats import KNOWN, Format, format_of
from .peer import Peer, RequestMetadata
from .typed import each, each_async
from .typed_stream import Errors, TypedStream, as_named

__all__ = ["Options", "StreamOptions", "TypedPeer", "Values", "typed"]

T = TypeVar("T")

Values = Iterable[Any] | AsyncIterable[Any]


class Options(TypedDict, total=False):
    """Named arguments of calls."""

    errors: Errors
    metadata: RequestMetadata


class StreamOptions(TypedDict, total=False):
    """Named arguments of streams."""

    errors: Errors
    metadata: RequestMetadata
    credit: int | None


def typed(peer: Peer, mime: str = "") -> TypedPeer:
    """Return a peer that sends and receives values instead of bytes.

    Args:
        peer: The peer.
        mime: The MIME type of the encoding. The default is that of the connection: `Settings.data_mime`, or the codec
            of River's URL.

    Raises:
        LocalError: The encoding is unknown.

    """
    return TypedPeer(peer, mime)


class TypedPeer:
    """A peer that sends and receives values; :func:`weirpool.typed` returns one.

    Values may be of any type that msgspec supports, such as its structs, and models of pydantic. A
    :class:`~weirpool.Payload` is sent unchanged. `returns` is the type or JSON Schema of the response; without it,
    values are those of JSON, such as dicts and lists. `errors` are subclasses of :class:`~weirpool.TypedError`: an
    error of the peer with the name of one of them is raised as that class. Metadata may set another MIME type for the
    data of a request.

    All methods raise the errors of :class:`~weirpool.Peer`, :exc:`~weirpool.Mismatch` if a response is not of the
    expected type, and :exc:`~weirpool.LocalError` if a value cannot be encoded.

    Args:
        peer: The peer.
        mime: See :func:`weirpool.typed`.

    """

    __slots__ = ("_form", "_peer")

    def __init__(self, peer: Peer, mime: str = "") -> None:
        self._peer = peer
        self._form = _known(mime or peer.data_mime)

    def __repr__(self) -> str:
        return f"<TypedPeer of {self._peer!r}, {self._form.name}>"

    @overload
    async def call(self, route: str, data: Any = ..., *, returns: type[T], **options: Unpack[Options]) -> T: ...
    @overload
    async def call(self, route: str, data: Any = ..., *, returns: Any = ..., **options: Unpack[Options]) -> Any: ...
    async def call(
        self, route: str, data: Any = None, *, returns: Any = Any, errors: Errors = (), metadata: RequestMetadata = None
    ) -> Any:
        """Send a value and return the response value. Arguments are those of the class and of :meth:`Peer.call`."""
        form, answer = self._format(metadata), _converter(returns)
        try:
            payload = await self._peer.call(route, _data(form, data), metadata=metadata)
        except ApplicationError as error:
            raise as_named(error, errors, form) from None
        return answer.decode(form, payload.data)

    async def fire(self, route: str, data: Any = None, *, metadata: RequestMetadata = None) -> None:
        """Send a value without waiting for a response. Arguments are those of the class and of :meth:`Peer.fire`."""
        form = self._format(metadata)
        await self._peer.fire(route, _data(form, data), metadata=metadata)

    @overload
    async def upload(
        self, route: str, data: Any, outgoing: Values, *, returns: type[T], **options: Unpack[Options]
    ) -> T: ...
    @overload
    async def upload(
        self, route: str, data: Any, outgoing: Values, *, returns: Any = ..., **options: Unpack[Options]
    ) -> Any: ...
    async def upload(
        self,
        route: str,
        data: Any,
        outgoing: Values,
        *,
        returns: Any = Any,
        errors: Errors = (),
        metadata: RequestMetadata = None,
    ) -> Any:
        """Send values and return the response value. Arguments are those of the class and of :meth:`Peer.upload`."""
        form, answer = self._format(metadata), _converter(returns)
        request, items = _data(form, data), _each(form, outgoing)
        try:
            payload = await self._peer.upload(route, request, items, metadata=metadata)
        except ApplicationError as error:
            raise as_named(error, errors, form) from None
        return answer.decode(form, payload.data)

    @overload
    def stream(
        self,
        route: str,
        data: Any = ...,
        *,
        returns: type[T],
        results: Literal[True],
        **options: Unpack[StreamOptions],
    ) -> TypedStream[T | ApplicationError]: ...
    @overload
    def stream(
        self, route: str, data: Any = ..., *, returns: type[T], **options: Unpack[StreamOptions]
    ) -> TypedStream[T]: ...
    @overload
    def stream(
        self, route: str, data: Any = ..., *, returns: Any = ..., results: bool = ..., **options: Unpack[StreamOptions]
    ) -> TypedStream[Any]: ...
    def stream(
        self,
        route: str,
        data: Any = None,
        *,
        returns: Any = Any,
        errors: Errors = (),
        metadata: RequestMetadata = None,
        credit: int | None = None,
        results: bool = False,
    ) -> TypedStream[Any]:
        """Return a stream of response values. Arguments are those of the class and of :meth:`Peer.stream`.

        With `results`, errors between the values are yielded like values, and do not end the stream: only River has
        such errors, and :exc:`~weirpool.UnsupportedKind` is raised for other protocols. Without it, the first error is
        raised and the stream is canceled.
        """
        form, answer = self._format(metadata), _converter(returns)
        request = _data(form, data)
        stream = self._peer.stream(route, request, metadata=metadata, credit=credit)
        return TypedStream(stream, form, answer, tuple(errors), results)

    @overload
    def channel(
        self,
        route: str,
        data: Any,
        outgoing: Values,
        *,
        returns: type[T],
        results: Literal[True],
        **options: Unpack[StreamOptions],
    ) -> TypedStream[T | ApplicationError]: ...
    @overload
    def channel(
        self, route: str, data: Any, outgoing: Values, *, returns: type[T], **options: Unpack[StreamOptions]
    ) -> TypedStream[T]: ...
    @overload
    def channel(
        self,
        route: str,
        data: Any,
        outgoing: Values,
        *,
        returns: Any = ...,
        results: bool = ...,
        **options: Unpack[StreamOptions],
    ) -> TypedStream[Any]: ...
    def channel(
        self,
        route: str,
        data: Any,
        outgoing: Values,
        *,
        returns: Any = Any,
        errors: Errors = (),
        metadata: RequestMetadata = None,
        credit: int | None = None,
        results: bool = False,
    ) -> TypedStream[Any]:
        """Send values and receive values. Arguments are those of :meth:`stream` and of :meth:`Peer.channel`."""
        form, answer = self._format(metadata), _converter(returns)
        request, items = _data(form, data), _each(form, outgoing)
        stream = self._peer.channel(route, request, items, metadata=metadata, credit=credit)
        return TypedStream(stream, form, answer, tuple(errors), results)

    def _format(self, metadata: RequestMetadata) -> Format:
        """Return the format of the data of a request."""
        mime = getattr(metadata, "mime", None)
        return self._form if mime is None else _known(str(mime))


def _known(mime: str) -> Format:
    form = format_of(mime)
    if form is None:
        message = f"values cannot be encoded as {mime!r}; connect with Settings(data_mime='application/json')"
        raise LocalError(f"{message}, or another of {KNOWN}")
    return form


def _converter(wanted: Any) -> Converter:
    try:
        return _cached_converter(wanted)
    except TypeError:
        # A JSON Schema cannot be hashed. Anything else that is not a type is rejected here.
        return Converter(wanted)


@lru_cache(maxsize=1_024)
def _cached_converter(wanted: Any) -> Converter:
    return Converter(wanted)


def _data(form: Format, value: Any) -> bytes | Payload:
    """Encode a value, unless it is a payload."""
    return value if isinstance(value, Payload) else Converter.encode(form, value)


def _each(form: Format, outgoing: Values) -> Values:
    """Encode each value when it is sent."""
    encode = partial(_data, form)
    if isinstance(outgoing, AsyncIterable):
        return each_async(encode, outgoing)
    if isinstance(outgoing, str | bytes):
        raise LocalError(f"a source of values is an iterable or an async iterable, not {type(outgoing).__name__}")
    return each(encode, outgoing)
