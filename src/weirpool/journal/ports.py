"""What the users of a journal need of it, wherever it is: on a disk, in an object store, or behind a collector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ..errors import JournalError

if TYPE_CHECKING:
    import pyarrow as pa

    from .gaps import Gap
    from .layout import Extent
    from .lock import Owner
    from .retention import Committed


__all__ = ["Coordinator", "Hold", "LogReader", "Refused"]


class Refused(JournalError):
    """A collector does not do this for this client, now or later."""


class LogReader(Protocol):
    """A view of one log, as of its last `refresh`. A position names the same row for ever, wherever the row is.

    `weirpool.journal.JournalReader` describes the methods and their errors.
    """

    source: str
    uuid: str

    @property
    def first(self) -> int:
        """The position of the first remaining row."""

    @property
    def end(self) -> int:
        """The position after the last row."""

    def refresh(self) -> None:
        """Read what was appended and trimmed since the last time."""

    def read(
        self, start: int, end: int, *, columns: Sequence[str] | None = None, skip_records: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows between two positions, with some columns of `SCHEMA`; None: with all of them."""

    def locate(self, position: int) -> tuple[int, int]:
        """Return the first and the end position of the batch that contains a row."""

    def segments(self, *, timed: bool = False) -> list[Extent]:
        """Return the rows and bytes of each segment, in order; with `timed` also their times, even if it takes long."""

    def bytes_between(self, start: int, end: int) -> int:
        """Estimate the bytes of the rows between two positions."""

    def split(
        self, start: int, end: int, *, max_rows: int | None = None, max_bytes: int | None = None
    ) -> list[tuple[int, int]]:
        """Split a range into consecutive parts for workers."""

    def gaps(self, start: int | None = None, end: int | None = None) -> list[Gap]:
        """Return the losses just before the rows between two positions."""

    def damage(
        self, start: int | None = None, end: int | None = None, *, records: bool = False
    ) -> list[tuple[int, int]]:
        """Return the damaged or missing positions whose loss was not accepted."""


class Hold(Protocol):
    """A reader's name, or a part of one, that this process holds: no other process can hold it meanwhile."""

    def close(self) -> None:
        """Give it back. May be called twice."""


class Coordinator(Protocol):
    """What the readers of a journal record in it: their positions, which rows they skipped, and who they are.

    Every method raises `JournalError`, or a subclass of it, if the journal cannot record that.
    """

    def cursors(self, source: str) -> Mapping[str, Committed]:
        """Return the content of each cursor of a log, by the cursor's name."""

    def commit(self, source: str, cursor: str, position: int, *, query: str | None) -> int:
        """Set a cursor's position, even if it was higher before; return it. It is durable on return."""

    def trim(self, source: str, cursor: str, position: int, *, query: str | None, retain_bytes: int) -> int:
        """Commit a position, and delete the rows that no reader needs; return the first remaining position."""

    def seek(self, source: str, reader: str, position: int) -> int:
        """Set the position of a reader that belongs to no query, forward or back; return it."""

    def drop(self, source: str, cursor: str) -> None:
        """Remove one cursor of a reader, unless it belongs to a query."""

    def forget(self, source: str, reader: str) -> Mapping[str, Committed | None]:
        """Remove a reader that will not return; return what `cursors_of` has returned."""

    def cursors_of(self, source: str, reader: str | None) -> Mapping[str, Committed | None]:
        """Return the content of each cursor of a reader, or of all, by the cursor's name; None for a damaged one."""

    def deletable(self, source: str, position: int) -> list[Extent]:
        """Return the segments that `delete` deletes, if no reader needs them."""

    def delete(self, source: str, position: int, *, force: bool) -> list[Extent]:
        """Delete the segments below a position, and return them; with `force` although readers need them."""

    def hold(self, name: str) -> Hold | None:
        """Hold a name until `close`, or until this process ends; return None if another process holds it."""

    def holder(self, name: str) -> Owner | None:
        """Return the process that holds a name, or held it when it was killed; None if unknown."""

    def recorded(self, source: str) -> list[Gap]:
        """Return the losses that were recorded apart from the rows, in order."""

    def record(self, source: str, losses: Iterable[Gap]) -> None:
        """Record losses of rows; they are durable on return. Existing ones are ignored."""
