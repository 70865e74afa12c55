"""What a sending half takes items from."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..errors import LocalError
from ..payload import Payload, PayloadRun

if TYPE_CHECKING:
    from ..wire.columns import RowBuffers, WidthRows

__all__ = ["SingleItem", "Source", "check_source", "many_of"]

Source: TypeAlias = AsyncIterable[Any] | Iterable[Any] | Awaitable[Any]
"""Yields items: Payload, bytes or str, or many at once as a PayloadRun, a pyarrow.RecordBatch or a pyarrow.Array. It
may also yield MetadataPush, which is not an item."""

SOURCES: Final = (AsyncIterable, Iterable, Awaitable)
SINGLE: Final = (bytes, str, Payload, PayloadRun)
"""Iterable types that are items, not sources of items."""


def check_source(source: object) -> Source:
    """Return a source from which items can be taken.

    Raises:
        LocalError: `source` is not iterable, or is a single item.

    """
    if not isinstance(source, SOURCES) or isinstance(source, SINGLE):
        raise LocalError(f"a source of items is an iterable or an async iterable, not {type(source).__name__}")
    return source


def many_of(item: object) -> PayloadRun | RowBuffers | WidthRows | None:
    """Return an object of many items in a form that can be sent in parts; None for a single item."""
    if isinstance(item, PayloadRun):
        return item
    # A record batch of pyarrow, or of any library that implements Arrow's C data interface.
    if hasattr(item, "__arrow_c_array__"):
        from ..wire.columns import rows_of

        return rows_of(item)
    return None


class SingleItem:
    """The future result of a call's handler, awaited as a source of one item."""

    def __init__(self, result: Awaitable[Any]) -> None:
        self._result = result
        # Called if a coroutine is never awaited.
        self.close: Callable[[], None] = getattr(result, "close", lambda: None)

    def __await__(self) -> Generator[Any, Any, tuple[Payload]]:
        result = yield from self._result.__await__()
        return (result if type(result) is Payload else Payload() if result is None else Payload(result),)
