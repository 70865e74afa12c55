"""Reads the segments of a log together: the next one, or the mark, determines how each must end."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

import pyarrow as pa

from .damage import Promise
from .index import Index, first_prev
from .mark import Mark
from .storage import LogFolder

__all__ = ["link", "missing_beginning", "promised", "seal", "survey"]


def promised(mark: Mark) -> Promise:
    """Return the promise of the mark about the segment that it names."""
    return Promise(mark.end, mark.head, mark.offset)


def seal(
    log: LogFolder,
    index: Index,
    content: pa.Buffer,
    following: int,
    head: str | None = None,
    known: str | None = None,
) -> None:
    """Read a segment to its end. `following` is the position of the next segment's first row.

    The digest of its last batch is `head`, if known; `known` is that of any batch that the log has.
    """
    index.extend(content, Promise(following, head, content.size, known))
    if index.damage and head is None:
        why = index.damage[-1].why
        head = first_prev(log.content(following), following, index.log)
        index.rebuild(content, Promise(following, head, content.size, known), why)
    index.sealed = True


def link(index: Index, content: pa.Buffer, following: Index) -> None:
    """Check that a segment ends with the batch that the next one was written after."""
    if following.prev is not None and index.head not in (following.prev, None):
        why = "the next segment was written after a different batch"
        index.rebuild(content, Promise(following.first, following.prev, content.size), why)


def missing_beginning(log: LogFolder, uuid: str, first: int, trimmed: int) -> list[Index]:
    """Return the index of the rows missing between `trimmed` and the first segment; none if none are."""
    if first <= trimmed:
        return []
    missing = Index(log.name(trimmed), trimmed, uuid)
    missing.miss(Promise(first))
    return [missing]


def survey(
    log: LogFolder, uuid: str, segments: list[int], mark: Mark | None, tail: Callable[[Index, pa.Buffer], None]
) -> list[Index]:
    """Return the indexes of a log's segments, each read to its end.

    Args:
        log: The log.
        uuid: The log's UUID.
        segments: Their positions, in order. A segment that disappears meanwhile was trimmed.
        mark: The durable mark, if there is one.
        tail: Reads the data after the mark in the last segment, if that has started.
    """
    indexes = []
    if mark is not None:
        indexes = missing_beginning(log, uuid, segments[0] if segments else mark.segment, log.trimmed(uuid))
    before: pa.Buffer | None = None
    for first, following in zip_longest(segments, segments[1:]):
        content = log.content(first)
        if content is None:
            # It was trimmed meanwhile, with everything before it.
            before = None
            continue
        index = Index(log.name(first), first, uuid)
        _read_to_end(log, index, content, following, mark)
        if not index.sealed:
            tail(index, content)
        if before is not None:
            link(indexes[-1], before, index)
        indexes.append(index)
        before = content
    if mark is not None and mark.offset and (not segments or segments[-1] < mark.segment):
        missing = Index(log.name(mark.segment), mark.segment, uuid)
        missing.miss(promised(mark))
        indexes.append(missing)
    return indexes


def _read_to_end(log: LogFolder, index: Index, content: pa.Buffer, following: int | None, mark: Mark | None) -> None:
    if mark is not None and mark.segment == index.first and mark.offset:
        index.extend(content, promised(mark))
    if following is not None:
        found = index.damage
        seal(log, index, content, following, known=mark.head if mark else None)
        # The mark may be older than the segment's end, and name a batch that has been replaced.
        index.damage = index.damage or found
    elif mark is not None and mark.segment > index.first:
        head = None if mark.offset else mark.head
        seal(log, index, content, mark.segment, head, mark.head)
