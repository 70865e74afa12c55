"""Plans a batch read: what is read is settled here, once per query."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition

from ..errors import LocalError
from .finding import with_collector
from .options import SourceOptions
from .partitions import JournalPartition, split
from .places import ENDS, STARTS, place_in
from .planning import Planner
from .survey import Span
from .troubles import Troubles
from .view import JournalView

__all__ = ["plan"]


def plan(options: SourceOptions) -> list[InputPartition]:
    """Return the partitions with all rows between the start and the end of the options.

    Raises:
        LocalError: A source to read does not exist, or the options are those of a stream.
        JournalError: The journal cannot be read.

    """
    if options.url is not None:
        raise LocalError('a batch reads what is in the journal; the option "url" is for streams')
    view = JournalView(options)
    Troubles(options, view).refresh(bounded=True)
    view.require_sources(
        {STARTS.name_of(options.starting): options.starting, ENDS.name_of(options.ending): options.ending}
    )
    ranges = {source: _range(options, view, source) for source in sorted(view.readers)}
    parts = split(Planner(options, view).plan_once(ranges), options.tasks, view.segments)
    # For an empty list, Spark creates a partition that is None.
    return [*with_collector(options, parts)] or [JournalPartition([])]


def _range(options: SourceOptions, view: JournalView, source: str) -> Span:
    first = view.start(source, place_in(options.starting, source, STARTS.default))
    end = view.position(source, place_in(options.ending, source, ENDS.default))
    if end < first:
        raise LocalError(f"source {source!r}: the read ends at position {end}, before its start, {first}")
    return first, end
