"""The retention of history: the oldest sealed segments are removed by age or size, if no reader needs them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import accumulate
from math import inf

import msgspec

from ..journal import asks
from ..journal.identity import locked
from ..journal.layout import log_folder
from ..journal.retention import commits
from ..journal.sealed import load_sealed, raise_floor, record_sealed
from ..objects.probe import probe_once
from .catalog import Catalog
from .manifest import Manifest, Segment, segment_file
from .options import SealOptions
from .stores import is_elsewhere, journal_store

__all__ = ["retire"]

_MICROSECONDS = 1_000_000


def retire(
    journal: str | os.PathLike[str], source: str, options: SealOptions, *, clock: Callable[[], float] = time.time
) -> int:
    """Remove the sealed segments of a log that are too old or too many, and what earlier calls left behind.

    Rows that one of the log's readers has not committed are kept. A manifest without the others is published first:
    that fails if a successor has taken the log's group over, however long this process was paused.

    Args:
        journal: The journal's folder.
        source: The log's name.
        options: `keep` and `keep_bytes` say what is kept.
        clock: Returns the current time in seconds since 1970.

    Returns:
        The first position of the history.

    Raises:
        JournalCorrupt: The manifest or a reader's cursor is damaged.
        JournalError: The log belongs to a group whose owner is not here, and only that knows the readers.
        StoreError: The store cannot be reached. Call again later.

    """
    folder = log_folder(journal, source)
    catalog = Catalog(journal_store(journal, options.store), source)
    manifest = catalog.newest()
    if manifest is None:
        return 0
    segments, now = catalog.segments(manifest), clock()
    cut = manifest.first
    if _cut(segments, options, manifest.end, now) > cut:
        needed = list(commits(folder).values())
        # Only the owner of the log's group knows the readers. A successor knows them as they are from here on.
        asks.confirm(folder)
        with locked(folder):
            needed += [manifest.end, *commits(folder).values()]
            cut = max(cut, _cut(segments, options, min(needed), now))
            if not raise_floor(folder, manifest.uuid, cut):
                # The sealer writes the file again.
                return manifest.first
    if cut > manifest.first:
        following = manifest.successor(
            first=cut,
            segments=[each for each in manifest.segments if each.end > cut],
            pages=[each for each in manifest.pages if each.end > cut],
        )
        if is_elsewhere(catalog.store, folder.parent):
            probe_once(catalog.store)
        if not catalog.publish(following):
            # Somebody else has published, such as a successor, which may know other readers by now.
            return manifest.first
        manifest = following
    # Also if a process was killed after it had published.
    state = load_sealed(folder, manifest.uuid)
    if state is not None:
        record_sealed(folder, msgspec.structs.replace(state, first=manifest.first, raw_bytes=manifest.raw_bytes))
    _sweep(catalog, manifest)
    return manifest.first


def _cut(segments: list[Segment], options: SealOptions, needed: int, now: float) -> int:
    """Return the position below which nothing is kept; 0 if everything is."""
    cut, size = 0, sum(each.size for each in segments)
    oldest = None if options.keep is None else (now - options.keep) * _MICROSECONDS
    for each, latest in zip(segments, _latest(segments), strict=True):
        old = oldest is not None and (each.times is None or latest < oldest)
        if each.end > needed or not (old or (options.keep_bytes is not None and size > options.keep_bytes)):
            break
        cut = each.end
        size -= each.size
    return cut


def _latest(segments: list[Segment]) -> list[float]:
    """Return when the latest row of each segment was received, at the latest: rows after it were received later.

    Otherwise a clock that was ahead for a moment would keep all later rows, until that time has come.
    """
    found = [inf if each.times is None else each.times[1] for each in reversed(segments)]
    return [*accumulate(found, min)][::-1]


def _sweep(catalog: Catalog, manifest: Manifest) -> None:
    """Delete the files of segments below the history."""
    limit = segment_file(manifest.first)
    names = (name.rpartition("/")[2] for name, _ in catalog.store.list(catalog.folder))
    catalog.store.delete(
        [
            f"{catalog.folder}/{name}"
            for name in names
            if len(name) == len(limit) and name.endswith(".parquet") and name < limit
        ]
    )
