"""Offsets: how far a streaming query is in each source, as Spark keeps it in the checkpoint.

``{"v": 1, "from": …, "sources": {name: position}}``. Spark compares offsets as strings, so the order of keys
never changes: sources are sorted. `from` says where the query began in each source. Before its first batch
that is the option `startingOffsets` as it was given, because Spark does not keep the first offset: if "latest"
were looked up anew after a crash, rows would be lost. So the end of the first batch holds what it came to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..errors import LocalError
from .options import Start

__all__ = ["Offset"]

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a query is.

    Attributes:
        begun: Where it began, or is to begin, in each source.
        positions: The next row of each source that it has begun to read.

    """

    begun: Start
    positions: Mapping[str, int]

    @classmethod
    def parse(cls, value: Any) -> Offset:
        """Return an offset from what Spark read in the checkpoint.

        Raises:
            LocalError: It is none of ours: it was edited, or belongs to another source.

        """
        # THREATS 82: whatever a checkpoint holds, it is data.
        if not isinstance(value, dict) or value.get("v") != VERSION or set(value) != {"v", "from", "sources"}:
            raise _foreign(value)
        begun, positions = value["from"], value["sources"]
        places = begun.values() if isinstance(begun, dict) else [begun] if isinstance(begun, str) else [None]
        if not all(place in ("earliest", "latest") or _is_position(place) for place in places):
            raise _foreign(value)
        if not isinstance(positions, dict) or not all(map(_is_position, positions.values())):
            raise _foreign(value)
        return cls(begun, positions)

    def json(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it."""
        begun = self.begun if isinstance(self.begun, str) else dict(sorted(self.begun.items()))
        return {"v": VERSION, "from": begun, "sources": dict(sorted(self.positions.items()))}

    def place(self, source: str) -> int | str:
        """Return where to read on in a source: a position, "earliest" or "latest".

        A source that came after the query began is read from its first row, whatever the query began with.
        """
        return self.positions[source] if source in self.positions else self.origin(source)

    def origin(self, source: str) -> int | str:
        """Return where the query began in a source; "earliest" or "latest" while that is not decided."""
        return self.begun if isinstance(self.begun, str) else self.begun.get(source, "earliest")

    def ranges(self, end: Offset) -> dict[str, tuple[int, int]]:
        """Return first and end position of the rows of each source between this offset and a later one.

        Raises:
            LocalError: `end` is not later, or does not tell where a source begins.

        """
        ranges = {}
        for source, behind in sorted(end.positions.items()):
            first = self.positions.get(source, end.origin(source))
            if not isinstance(first, int) or behind < first:
                raise LocalError(
                    f"source {source!r}: there are no rows from {first} to {behind}; this checkpoint was changed by "
                    "hand, or is that of another query"
                )
            if first < behind:
                ranges[source] = (first, behind)
        return ranges


def _is_position(value: Any) -> bool:
    return type(value) is int and value >= 0


def _foreign(value: Any) -> LocalError:
    return LocalError(
        f"the checkpoint holds the offset {str(value)[:200]}, which is none of this source in version {VERSION}; "
        "give the query the checkpoint that it had, or a new one"
    )
