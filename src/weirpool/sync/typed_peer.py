"""Blocking typed peers."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, overload

from ..aio import typed_peer as aio
from ..aio.items import TABLE_BYTES
from ..aio.peer import RequestMetadata
from ..aio.typed_peer import Options, StreamOptions, Values
from ..aio.typed_stream import Errors
from ..aio.typed_stream import TypedStream as AsyncTypedStream
from ..errors import ApplicationError
from . import tables
from .peer import Peer
from .sources import source_of
from .stream import Batches, Stream

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["TypedPeer", "TypedStream", "typed"]

T = TypeVar("T")


class _Timeout(Options, total=False):
    timeout: float | None


class _StreamTimeout(StreamOptions, total=False):
    timeout: float | None


def typed(peer: Peer, mime: str = "") -> TypedPeer:
    """Return a peer that sends and receives values instead of bytes. See :func:`weirpool.typed`."""
    return TypedPeer(peer, mime)


class TypedPeer:
    """A peer that sends and receives values; :func:`weirpool.sync.typed` returns one.

    It has the methods and arguments of :class:`weirpool.TypedPeer`, which block. `timeout` is as for
    :class:`weirpool.sync.Peer`.

    Args:
        peer: The peer.
        mime: See :func:`weirpool.typed`.

    """

    def __init__(self, peer: Peer, mime: str = "") -> None:
        self._peer = peer
        self._raw = aio.typed(peer._raw, mime)

    def __repr__(self) -> str:
        return repr(self._raw)

    @overload
    def call(self, route: str, data: Any = ..., *, returns: type[T], **options: Unpack[_Timeout]) -> T: ...
    @overload
    def call(self, route: str, data: Any = ..., *, returns: Any = ..., **options: Unpack[_Timeout]) -> Any: ...
    def call(
        self,
        route: str,
        data: Any = None,
        *,
        returns: Any = Any,
        errors: Errors = (),
        metadata: RequestMetadata = None,
        timeout: float | None = None,
    ) -> Any:
        """Send a value and return the response value. Arguments are those of :meth:`weirpool.TypedPeer.call`."""
        call = self._raw.call(route, data, returns=returns, errors=errors, metadata=metadata)
        return self._peer._wait(call, timeout, f"call {route!r}")

    def fire(
        self, route: str, data: Any = None, *, metadata: RequestMetadata = None, timeout: float | None = None
    ) -> None:
        """Send a value without waiting for a response."""
        self._peer._wait(self._raw.fire(route, data, metadata=metadata), timeout, f"fire {route!r}")

    @overload
    def upload(
        self, route: str, data: Any, outgoing: Values, *, returns: type[T], **options: Unpack[_Timeout]
    ) -> T: ...
    @overload
    def upload(
        self, route: str, data: Any, outgoing: Values, *, returns: Any = ..., **options: Unpack[_Timeout]
    ) -> Any: ...
    def upload(
        self,
        route: str,
        data: Any,
        outgoing: Values,
        *,
        returns: Any = Any,
        errors: Errors = (),
        metadata: RequestMetadata = None,
        timeout: float | None = None,
    ) -> Any:
        """Send values and return the response value. `outgoing` is read as by :meth:`weirpool.sync.Peer.channel`."""
        source: Any = source_of(outgoing)
        upload = self._raw.upload(route, data, source, returns=returns, errors=errors, metadata=metadata)
        return self._peer._wait(upload, timeout, f"upload {route!r}")

    @overload
    def stream(
        self,
        route: str,
        data: Any = ...,
        *,
        returns: type[T],
        results: Literal[True],
        **options: Unpack[_StreamTimeout],
    ) -> TypedStream[T | ApplicationError]: ...
    @overload
    def stream(
        self, route: str, data: Any = ..., *, returns: type[T], **options: Unpack[_StreamTimeout]
    ) -> TypedStream[T]: ...
    @overload
    def stream(
        self, route: str, data: Any = ..., *, returns: Any = ..., results: bool = ..., **options: Unpack[_StreamTimeout]
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
        timeout: float | None = None,
    ) -> TypedStream[Any]:
        """Return a stream of response values. Arguments are those of :meth:`weirpool.TypedPeer.stream`."""
        stream = self._raw.stream(
            route, data, returns=returns, errors=errors, metadata=metadata, credit=credit, results=results
        )
        return self._stream(stream, f"stream {route!r}", timeout)

    @overload
    def channel(
        self,
        route: str,
        data: Any,
        outgoing: Values,
        *,
        returns: type[T],
        results: Literal[True],
        **options: Unpack[_StreamTimeout],
    ) -> TypedStream[T | ApplicationError]: ...
    @overload
    def channel(
        self, route: str, data: Any, outgoing: Values, *, returns: type[T], **options: Unpack[_StreamTimeout]
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
        **options: Unpack[_StreamTimeout],
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
        timeout: float | None = None,
    ) -> TypedStream[Any]:
        """Send values and receive values. `outgoing` is read as by :meth:`weirpool.sync.Peer.channel`."""
        source: Any = source_of(outgoing)
        stream = self._raw.channel(
            route, data, source, returns=returns, errors=errors, metadata=metadata, credit=credit, results=results
        )
        return self._stream(stream, f"channel {route!r}", timeout)

    def _stream(self, stream: AsyncTypedStream[Any], what: str, timeout: float | None) -> TypedStream[Any]:
        raw = Stream(stream.raw, self._peer, self._peer._loop, what, self._peer._limit(timeout))
        return TypedStream(raw, stream)


class TypedStream(Generic[T]):
    """The values of a stream: use it as ``with``, and iterate over it. See :class:`weirpool.sync.Stream`.

    Values are decoded in the thread that consumes them.

    Attributes:
        raw: The underlying stream of payloads.

    """

    def __init__(self, raw: Stream, stream: AsyncTypedStream[T]) -> None:
        self.raw = raw
        self._stream = stream

    def __enter__(self) -> TypedStream[T]:
        try:
            self.raw.__enter__()
        except ApplicationError as error:
            raise self._stream.named(error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.raw.__exit__(kind, error, traceback)

    def __iter__(self) -> Generator[T, None, None]:
        items = iter(self.raw)
        decode = self._stream.decode
        try:
            for payload in items:
                yield decode(payload)
        except ApplicationError as error:
            raise self._stream.named(error) from None
        finally:
            items.close()

    def batches(
        self,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        *,
        schema: pyarrow.Schema | None = None,
    ) -> Generator[pyarrow.RecordBatch, None, None]:
        """Return the values as record batches. Arguments are those of :meth:`weirpool.TypedStream.batches`."""
        return tables.batches(self._source(), self._stream.conversion(schema), max_rows, max_bytes)

    def reader(self, *, schema: pyarrow.Schema | None = None) -> pyarrow.RecordBatchReader:
        """Return a reader of the values; see :meth:`weirpool.sync.Stream.reader`."""
        return tables.reader(self._source(), self._stream.conversion(schema))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def to_arrow(
        self, limit: int | None = None, *, max_bytes: int = TABLE_BYTES, schema: pyarrow.Schema | None = None
    ) -> pyarrow.Table:
        """Return the values as a table. Arguments are those of :meth:`weirpool.TypedStream.to_arrow`."""
        return tables.table(self._source(), self._stream.conversion(schema), limit, max_bytes)

    def to_polars(
        self, limit: int | None = None, *, max_bytes: int = TABLE_BYTES, schema: pyarrow.Schema | None = None
    ) -> polars.DataFrame:
        """Return the values as a DataFrame of Polars. Arguments are those of :meth:`weirpool.TypedStream.to_arrow`."""
        from ..frames.tables import frame_of

        return frame_of(self.to_arrow(limit, max_bytes=max_bytes, schema=schema))

    def to_pandas(
        self, limit: int | None = None, *, max_bytes: int = TABLE_BYTES, schema: pyarrow.Schema | None = None
    ) -> pandas.DataFrame:
        """Return the values as a DataFrame of pandas. Arguments are those of :meth:`weirpool.TypedStream.to_arrow`."""
        return self.to_arrow(limit, max_bytes=max_bytes, schema=schema).to_pandas()

    def _source(self) -> NamedBatches:
        return NamedBatches(self.raw, self._stream.named)

    def cancel(self) -> None:
        """Cancel the stream. Values that have arrived can still be consumed."""
        self.raw.cancel()


class NamedBatches(Batches):
    """Batches of a typed stream, whose errors have classes of their own."""

    def __init__(self, stream: Stream, named: Callable[[ApplicationError], ApplicationError]) -> None:
        super().__init__(stream)
        self._named = named

    def __call__(self, max_rows: int | None = None, max_bytes: int | None = None) -> pyarrow.RecordBatch | None:
        """Return the next batch; None at the end."""
        try:
            return super().__call__(max_rows, max_bytes)
        except ApplicationError as error:
            raise self._named(error) from None
