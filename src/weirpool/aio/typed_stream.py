"""Typed streams: items are decoded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import ApplicationError, LocalError
from ..payload import Payload
from ..schema.converter import Converter
from ..schema.formats import Format
from ..schema.named import TypedError, named_error
from .handlers import close_items
from .items import TABLE_BYTES, collected
from .streams import Stream

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ..frames.tables import Conversion

__all__ = ["Errors", "TypedStream", "as_named"]

T = TypeVar("T")

Errors = Iterable[type[TypedError]]


class TypedStream(Generic[T]):
    """The values of a stream: use it as ``async with``, and iterate over it. See :class:`~weirpool.Stream`.

    Attributes:
        raw: The underlying stream of payloads.

    """

    __slots__ = ("_answer", "_errors", "_form", "_results", "raw")

    def __init__(
        self, raw: Stream, form: Format, answer: Converter, errors: tuple[type[TypedError], ...], results: bool = False
    ) -> None:
        self.raw = raw
        # Errors between values; None if the first one is raised.
        self._results = raw.report_errors() if results else None
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
        items = aiter(self.raw)
        try:
            async for item in items:
                yield self.decode(item)
        except ApplicationError as error:
            raise self.named(error) from None
        finally:
            await close_items(items)

    def decode(self, payload: Payload) -> T:
        """Return the value of an item of :attr:`raw`; with `results`, an item that is an error is that error.

        Raises:
            Mismatch: It is not of the expected type.

        """
        item = payload if self._results is None else self._results.of(payload)
        # T includes the errors.
        value: T = self.named(item) if isinstance(item, Exception) else self._answer.decode(self._form, item.data)  # type: ignore[assignment]
        return value

    def named(self, error: ApplicationError) -> ApplicationError:
        """Return an error of :attr:`raw` as an instance of the class with its name, if there is one."""
        return as_named(error, self._errors, self._form)

    def batches(
        self,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        *,
        schema: pyarrow.Schema | None = None,
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """Return the values as record batches with a column for each field; needs pyarrow.

        The columns follow from the type of the values, `returns`. See :meth:`weirpool.Stream.batches`.

        Args:
            max_rows: The maximum number of rows of a batch; `Settings.batch_rows` by default.
            max_bytes: Payload bytes after which a batch gets no more rows; `Settings.batch_bytes` by default.
            schema: The columns, if they should be fewer or have other types.

        Raises:
            LocalError: The type has no fields, or one that does not fit into a column: pass a schema. Or `results` is
                set.
            Mismatch: A value is not of its type, or does not fit into its column.

        """
        return self._batches(max_rows, max_bytes, self.conversion(schema))

    async def to_arrow(
        self, limit: int | None = None, *, max_bytes: int = TABLE_BYTES, schema: pyarrow.Schema | None = None
    ) -> pyarrow.Table:
        """Return the values as a table. See :meth:`weirpool.Stream.to_arrow` and :meth:`batches`."""
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
        if self._results is not None:
            raise LocalError(
                "errors between values have no columns; leave out results=True, or iterate over the stream"
            )
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


def as_named(error: ApplicationError, errors: Errors, form: Format) -> ApplicationError:
    """Return an error as an instance of the class with its name, if there is one."""
    classes = {cls.NAME: cls for cls in errors}
    return named_error(error, classes, form) if classes else error
