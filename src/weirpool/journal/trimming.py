"""Deletes segments whose rows are no longer needed, after their gaps have been stored elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from ..errors import JournalCorrupt, JournalUnavailable
from . import gaps
from .disk import disk_errors, replace_file, sync_folder
from .identity import load, without_identity
from .index import Index
from .layout import TRIMMED, Extent, bytes_between, segment_name
from .mark import encode_trimmed
from .storage import LogFolder
from .survey import seal

__all__ = ["delete_free", "free_segments"]


def delete_free(
    folder: Path,
    committed: int,
    retain_rows: int,
    retain_bytes: int,
    recorded: Callable[[int, int], Iterable[gaps.Gap]] | None = None,
) -> int:
    """Delete the segments that are no longer needed, and return the position of the first remaining row.

    No reader needs rows below `committed`. Below that, `retain_rows` rows are kept, and `retain_bytes` bytes in whole
    segments. If there is no space for the gaps of the segments, it raises `DiskFull`, and deletes none.

    `recorded` returns the gaps in segments from one position to another if they are known; otherwise they are read.
    """
    log = LogFolder.local(folder)
    identity = load(folder)
    if identity is None:
        raise without_identity(folder)
    uuid = identity.uuid
    segments = log.segments()
    free = free_segments(segments, committed, retain_rows, retain_bytes)
    # This is durable before the first segment is deleted. After a crash in between, a gap exists twice and counts once.
    if free and recorded is not None:
        gaps.add(folder, recorded(free[0].first, free[-1].end))
    else:
        gaps.add(folder, [gap for extent in free for gap in _recorded(log, uuid, extent)])
    # The position is recorded first too; on a full disk, when there is space, perhaps by the next call.
    below = free[-1].end if free else min(segments[0][0], committed) if segments else 0
    noted = below <= _noted(log, uuid) or _note(log, folder, uuid, below)
    for extent in free:
        with disk_errors(folder, "be trimmed"):
            (folder / segment_name(extent.first)).unlink(missing_ok=True)
            # Otherwise a power cut could restore this segment, but not the ones after it.
            sync_folder(folder)
        noted = noted or _note(log, folder, uuid, below)
    return free[-1].end if free else segments[0][0] if segments else 0


def free_segments(
    segments: list[tuple[int, int]], committed: int, retain_rows: int = 0, retain_bytes: int = 0
) -> list[Extent]:
    """Return those of a log's segments, each a first position and a size, that `delete_free` deletes."""
    extents = [Extent(first, end, size) for (first, size), (end, _) in pairwise(segments)]
    free: list[Extent] = []
    while extents:
        oldest = extents.pop(0)
        if oldest.end > committed - retain_rows or bytes_between(extents, oldest.end, committed) < retain_bytes:
            break
        free.append(oldest)
    return free


def _note(log: LogFolder, folder: Path, uuid: str, position: int) -> bool:
    """Record that rows below a position were trimmed, which is not damage; return whether there was space.

    If another process has trimmed further meanwhile, its position stays.
    """
    try:
        with disk_errors(folder / TRIMMED, "be written"), gaps.locked(folder):
            if position > _noted(log, uuid):
                replace_file(folder / TRIMMED, encode_trimmed(position, uuid))
    except JournalUnavailable:
        return False
    return True


def _noted(log: LogFolder, uuid: str) -> int:
    try:
        return log.trimmed(uuid)
    except JournalCorrupt:
        # Only the newest position in the file matters, and it is now known again.
        return 0


def _recorded(log: LogFolder, uuid: str, extent: Extent) -> Iterator[gaps.Gap]:
    """Yield the gaps recorded in a segment. Damage in it is a gap too, because its records are unknown."""
    content = log.content(extent.first)
    if content is None:
        # Another process has trimmed it, and stored its gaps.
        return
    index = Index(log.name(extent.first), extent.first, uuid)
    seal(log, index, content, extent.end)
    yield from index.gaps
    for damage in index.damage:
        end = extent.end if damage.end is None else damage.end
        reason = f"damaged when it was trimmed, from position {damage.first} on: gaps there are unknown ({damage.why})"
        yield gaps.Gap(end, datetime.now(UTC), reason, number=gaps.LATE)
