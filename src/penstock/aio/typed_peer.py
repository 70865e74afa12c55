"""Typed peers: requests are encoded, and responses decoded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Mapping
from functools import lru_cache, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from ..errors import ApplicationError, LocalError
from ..payload import Payload
from ..schema.converter import Converter
from ..schema.formats import KNOWN, Format, format_of
from ..schema.named import TypedError, named_error
from .handlers import close_items
from .items import TABLE_BYTES, collected
from .peer import Peer, RequestMetadata
from .streams import Stream
from .typed import each, each_async

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ..frames.tables import Conversion

__all__ = ["Errors", "Options", "StreamOptions", "TypedPeer", "TypedStream", "Values", "typed"]

T = TypeVar("T")

Errors = Iterable[type[TypedError]]
Values = Iterable[Any] | AsyncIterable[Any]


class Options(TypedDict, total=False):
    """Named arguments of calls."""

    errors: Errors
    metadata: RequestMetadata


class StreamOptions(Options, total=False):
    """Named arguments of streams."""

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
    """A peer that sends and receives values; :func:`penstock.typed` returns one.

    Values may be of any type that msgspec supports, such as its structs, and models of pydantic. A
    :class:`~penstock.Payload` is sent unchanged. `returns` is the type or JSON Schema of the response; without it,
    values are those of JSON, such as dicts and lists. `errors` are subclasses of :class:`~penstock.TypedError`: an
    error of the peer with the name of one of them is raised as that class. Metadata may set another MIME type for the
    data of a request.

    All methods raise the errors of :class:`~penstock.Peer`, :exc:`~penstock.Mismatch` if a response is not of the
    expected type, and :exc:`~penstock.LocalError` if a value cannot be encoded.

    Args:
        peer: The peer.
        mime: See :func:`penstock.typed`.

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
            raise _as_named(error, errors, form) from None
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
            raise _as_named(error, errors, form) from None
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
        such errors, and :exc:`~penstock.UnsupportedKind` is raised for other protocols. Without it, the first error is
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


class TypedStream(Generic[T]):
    """The values of a stream: use it as ``async with``, and iterate over it. See :class:`~penstock.Stream`.

    Attributes:
        raw: The underlying stream of payloads.

    """

    __slots__ = ("_answer", "_errors", "_form", "_source", "raw")

    def __init__(
        self, raw: Stream, form: Format, answer: Converter, errors: tuple[type[TypedError], ...], results: bool = False
    ) -> None:
        self.raw = raw
        self._source: AsyncIterable[Payload | ApplicationError] = raw.with_errors() if results else raw
        self._form = form
        self._answer = answer
        self._errors = errors

    async def __aenter__(self) -> TypedStream[T]:
        try:
            await self.raw.__aenter__()
        except ApplicationError as error:
            raise self.named(error) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.raw.__aexit__(kind, error, traceback)

    def __aiter__(self) -> AsyncIterator[T]:
        return self._items()

    async def _items(self) -> AsyncGenerator[T, None]:
        items = aiter(self._source)
        try:
            async for item in items:
                if isinstance(item, Payload):
                    yield self._answer.decode(self._form, item.data)
                else:
                    yield self.named(item)  # type: ignore[misc]  # T includes it
        except ApplicationError as error:
            raise self.named(error) from None
        finally:
            await close_items(items)

    def decode(self, payload: Payload) -> T:
        """Return the value of an item of :attr:`raw`.

        Raises:
            Mismatch: It is not of the expected type.

        """
        value: T = self._answer.decode(self._form, payload.data)
        return value

    def named(self, error: ApplicationError) -> ApplicationError:
        """Return an error of :attr:`raw` as an instance of the class with its name, if there is one."""
        return _as_named(error, self._errors, self._form)

    def batches(
        self,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        *,
        schema: pyarrow.Schema | None = None,
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """Return the values as record batches with a column for each field; needs pyarrow.

        The columns follow from the type of the values, `returns`. See :meth:`penstock.Stream.batches`.

        Args:
            max_rows: The maximum number of rows of a batch; `Settings.batch_rows` by default.
            max_bytes: Payload bytes after which a batch gets no more rows; `Settings.batch_bytes` by default.
            schema: The columns, if they should be fewer or have other types.

        Raises:
            LocalError: The type has no fields, or one that does not fit into a column. Pass a schema then.
            Mismatch: A value is not of its type, or does not fit into its column.

        """
        return self._batches(max_rows, max_bytes, self.conversion(schema))

    async def to_arrow(
        self, limit: int | None = None, *, max_bytes: int = TABLE_BYTES, schema: pyarrow.Schema | None = None
    ) -> pyarrow.Table:
        """Return the values as a table. See :meth:`penstock.Stream.to_arrow` and :meth:`batches`."""
        try:
            return await collected(self.raw, self.conversion(schema), limit, max_bytes)
        except ApplicationError as error:
            raise self.named(error) from None

    async def to_polars(
        self, limit: int | None = None, *, max_bytes: int = TABLE_BYTES, schema: pyarrow.Schema | None = None
    ) -> polars.DataFrame:
        """Return the values as a DataFrame of Polars. Arguments are those of :meth:`to_arrow`."""
        from ..frames.tables import frame_of

        return frame_of(await self.to_arrow(limit, max_bytes=max_bytes, schema=schema))

    async def to_pandas(
        self, limit: int | None = None, *, max_bytes: int = TABLE_BYTES, schema: pyarrow.Schema | None = None
    ) -> pandas.DataFrame:
        """Return the values as a DataFrame of pandas. Arguments are those of :meth:`to_arrow`."""
        return (await self.to_arrow(limit, max_bytes=max_bytes, schema=schema)).to_pandas()

    def conversion(self, schema: pyarrow.Schema | None) -> Conversion:
        """Return how items of :attr:`raw` become rows; see :meth:`batches`."""
        wanted, form = self._answer.wanted, self._form
        if wanted is Any or isinstance(wanted, Mapping):
            from ..frames.items import ItemColumns

            if schema is None:
                raise LocalError("the columns of values without a type are unknown; pass returns= or schema=")
            # River's encodings are named after those that they extend.
            return ItemColumns(form.name.rpartition(" ")[2], schema)
        from ..frames.columns import ValueColumns

        return ValueColumns(wanted, partial(self._answer.decode, form), schema)

    async def _batches(
        self, max_rows: int | None, max_bytes: int | None, conversion: Conversion
    ) -> AsyncGenerator[pyarrow.RecordBatch, None]:
        try:
            while (batch := await self.raw.next_batch(max_rows, max_bytes)) is not None:
                for rows in conversion.convert(batch):
                    yield rows
        except ApplicationError as error:
            raise self.named(error) from None

    def cancel(self) -> None:
        """Cancel the stream. Values that have arrived can still be consumed."""
        self.raw.cancel()


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


def _as_named(error: ApplicationError, errors: Errors, form: Format) -> ApplicationError:
    """Return an error as an instance of the class with its name, if there is one."""
    classes = {cls.NAME: cls for cls in errors}
    return named_error(error, classes, form) if classes else error
