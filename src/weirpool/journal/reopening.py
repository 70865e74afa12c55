"""Opens a log for its writer: who it is, where it ends after a crash, and which segments are complete."""

from __future__ import annotations

import logging
import shlex
from itertools import pairwise
from pathlib import Path

from ..errors import JournalCorrupt
from .counts import shown_number
from .disk import disk_errors
from .identity import Identity, Request, create, load, without_identity
from .layout import COMMITTED, DURABLE, Extent, segment_name
from .losses import accept, examine, set_aside
from .recovery import Tail
from .retention import beyond, last_commit
from .sealed import sealed_extents
from .segment import TEMPORARY
from .storage import LogFolder

__all__ = ["complete_segments", "identified", "recovered"]

_log = logging.getLogger("weirpool.journal.writer")


def identified(folder: Path, request: Request | None, *, fsync: bool) -> Identity:
    """Check that a log collects `request`; write the identity of a new log before anything else."""
    identity = load(folder)
    if identity is None:
        if LogFolder.local(folder).segments():
            raise without_identity(folder)
        return create(folder, request, fsync=fsync)
    if request is not None:
        request.check(identity, folder)
    return identity


def recovered(folder: Path, uuid: str, now: float, *, accept_loss: bool) -> Tail:
    """Return the end of a log. Damage is recorded as lost if that is accepted, and raised if not."""
    condition = examine(LogFolder.local(folder), uuid, last_commit(folder, uuid))
    if condition.error is not None and not accept_loss:
        raise condition.error
    for name, cursor in beyond(folder, uuid, condition.tail.position).items():
        raise _not_compared(folder / COMMITTED / name, cursor.position, condition.tail.position)
    for gap in accept(folder, condition.lost, now, condition.tail):
        _log.warning("%s: a gap at position %d: %s", folder, gap.position, gap.reason)
    if condition.mark_is_damaged:
        set_aside(folder / DURABLE)
    return condition.tail


def _not_compared(path: Path, position: int, end: int) -> JournalCorrupt:
    """Return the error for a cursor beyond the end of its log that proves nothing: it may have been set by mistake."""
    journal, reader = shlex.quote(str(path.parents[2])), shlex.quote(path.name.partition("@")[0])
    return JournalCorrupt(
        f"{path}: this reader is at position {shown_number(position)}, and the log ends at {end}; when it was set, "
        f"nobody looked. Set it back with `weirpool journal seek {journal} {reader} --to latest`, drop it with "
        f"`weirpool journal forget {journal} {reader}`, or see `weirpool journal repair {journal}`; if rows are "
        "missing, restore the log from a copy first"
    )


def complete_segments(folder: Path, tail: Tail) -> list[Extent]:
    """Remove what a killed writer has left after the end of a log; return the segments before the last one."""
    with disk_errors(folder, "be written to"):
        for leftover in folder.glob(f"*{TEMPORARY}"):
            leftover.unlink()
        for first in tail.leftovers if tail.size else [*tail.leftovers, tail.first]:
            set_aside(folder / segment_name(first))
        segments = LogFolder.local(folder).segments()
        ends = segments if tail.size else [*segments, (tail.first, 0)]
        complete = (Extent(first, end, size) for (first, size), (end, _) in pairwise(ends))
        return [*sealed_extents(folder, ends[0][0] if ends else 0), *complete]
