"""The requests by which a micro-batch is staged, committed or dropped.

1. Each task sends rows to :data:`STAGE`, as an upload whose request is a :class:`StageRequest`. The answer is a
   :class:`Stage`: the rows are on disk, but nobody sees them.
2. When all tasks are done, the driver calls :data:`COMMIT` with a :class:`CommitRequest`. The answer is a
   :class:`Committed`: the rows are in the log. The same call again has the same answer and no other effect.
3. If the micro-batch has failed, the driver may call :data:`ABORT` with a :class:`CommitRequest`, to free disk space.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

__all__ = ["ABORT", "COMMIT", "STAGE", "CommitRequest", "Committed", "Stage", "StageRequest"]

STAGE: Final = "weirpool.stage"
COMMIT: Final = "weirpool.commit"
ABORT: Final = "weirpool.abort"

Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class StageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request of an upload of rows."""

    route: str
    """The route whose log gets the rows."""
    query: str
    """The query, or the id of one batch write."""
    batch: Number
    """The micro-batch."""
    partition: Number = 0
    """The task."""


class Stage(msgspec.Struct, frozen=True):
    """Staged rows."""

    id: str
    """Their name."""
    rows: Number
    """Their number."""
    digest: str
    """Their digest; see :class:`weirpool.receiving.digest.RowDigest`."""


class CommitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The stages of a micro-batch, in the order of their rows in the log."""

    route: str
    """The route whose log gets the rows."""
    query: str
    """The query."""
    batch: Number
    """The micro-batch."""
    stages: list[Stage]
    """All of its stages, and no others."""
    single: bool = False
    """The query is a batch write, which commits nothing else: it need not be remembered for long."""


class Committed(msgspec.Struct, frozen=True):
    """A micro-batch in the log."""

    first: int | None
    """The position of its first row; None if the micro-batch was committed before the query's last one."""
    end: int | None
    """The position after its last row."""
    repeated: bool = False
    """The micro-batch had been committed before."""

    @property
    def rows(self) -> int | None:
        """The number of its rows; None if the position is not known any more."""
        return None if self.first is None or self.end is None else self.end - self.first
