"""Decodes formats with one row per item: each item becomes an object, and the objects become columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from ..values.decoder import Decoder
from .columns import Columns
from .decoded import Decoded, blocks, nulled, reason

__all__ = ["ITEM_ERRORS", "RowDecoder"]

ITEM_ERRORS: Final[tuple[type[Exception], ...]] = (
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    EOFError,
    RecursionError,
    MemoryError,
)
"""What Python and Arrow raise for malformed data."""


class RowDecoder:
    """Decodes one item at a time.

    Args:
        load: Returns the object of an item. An item that makes it raise one of `errors` is malformed.
        blank: Any object, to take the place of a malformed item until its row is nulled.
        columns: Builds columns from objects.
        too_deep: Returns at least 0 for an item that is nested too deep for `load`.
        errors: Exceptions of `load`, in addition to those of `ITEM_ERRORS`.
        decoder: Reads again what `load` refuses or may read wrongly, and raises the same; None: nothing is read again.

    """

    def __init__(
        self,
        load: Callable[[bytes], Any],
        blank: object,
        columns: Columns,
        too_deep: Callable[[bytes], int] | None = None,
        errors: tuple[type[Exception], ...] = (),
        decoder: Decoder | None = None,
    ) -> None:
        self._load = load
        self._blank = blank
        self._columns = columns
        self._too_deep = too_deep
        self._errors = (*ITEM_ERRORS, *errors)
        self._decoder = decoder

    def decode(self, items: pa.BinaryArray) -> Iterator[Decoded]:
        """Yield the rows of all items."""
        for block in blocks(items):
            values = block.fill_null(b"").to_pylist() if block.null_count else block.to_pylist()
            malformed: dict[int, str] = {}
            objects = self._objects(values, malformed)
            parts = list(self._built(objects, 0, malformed))
            fields = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
            if malformed:
                fields = nulled(fields, malformed)
            yield Decoded(len(block), fields, dict(sorted(malformed.items())))

    def _objects(self, items: list[bytes], malformed: dict[int, str]) -> list[object]:
        """Return the object of each item."""
        self._leave_out_deep(items, malformed)
        objects: list[object] = []
        remaining = iter(items)
        while len(objects) < len(items):
            try:
                # On an exception, the list has the objects before it, and the iterator goes on after it.
                objects.extend(map(self._load, remaining))
            except self._errors:
                objects.append(self._again(items, len(objects), malformed))
        is_doubtful = None if self._decoder is None else self._decoder.is_doubtful
        if is_doubtful is not None and is_doubtful(b"".join(items)):
            for index, item in enumerate(items):
                if is_doubtful(item):
                    objects[index] = self._again(items, index, malformed)
        return objects

    def _again(self, items: list[bytes], index: int, malformed: dict[int, str]) -> object:
        """Return the object of an item that is read again, and empty the item: it is not read a third time."""
        item, items[index] = items[index], b""
        try:
            return self._load(item) if self._decoder is None else self._decoder.again(item)
        except self._errors as error:
            malformed.setdefault(index, reason(error))
            return self._blank

    def _leave_out_deep(self, items: list[bytes], malformed: dict[int, str]) -> None:
        """Empty the items that are nested too deep."""
        if self._too_deep is None or max(map(self._too_deep, items), default=-1) < 0:
            return
        for index, item in enumerate(items):
            at = self._too_deep(item)
            if at >= 0:
                malformed[index] = f"nested too deep (byte {at})"
                items[index] = b""

    def _built(self, objects: list[object], first: int, malformed: dict[int, str]) -> Iterator[pa.RecordBatch]:
        """Yield batches with a row for each object; find those that do not fit the schema by halving."""
        try:
            yield self._columns.build(objects)
        except ITEM_ERRORS:
            if len(objects) == 1:
                # Not Arrow's message, which quotes the value.
                malformed[first] = "a value does not fit its type"
                yield self._columns.build([self._blank])
                return
            middle = len(objects) // 2
            yield from self._built(objects[:middle], first, malformed)
            yield from self._built(objects[middle:], first + middle, malformed)
