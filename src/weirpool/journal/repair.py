"""Repairs a damaged log: first a plan, then its execution.

Lost data stays lost. Readable rows stay in place; unreadable positions are recorded as lost. Damaged data is never
changed or deleted: a file that must be replaced is renamed first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa

from ..errors import JournalCorrupt, LocalError
from .counts import shown_number
from .damage import Damage, headers
from .disk import disk_errors, replace_file, sync_folder
from .format import Malformed, genesis, preamble_log
from .gaps import Gap
from .identity import Identity, encode
from .identity import load as load_identity
from .layout import COMMITTED, DURABLE, GAPS, IDENTITY, LOCK, TRIMMED, UNSYNCED, log_folder, segment_name
from .lock import Lock
from .losses import DAMAGED, Condition, accept, examine, set_aside
from .mark import Mark
from .placement import Misplaced, misplaced
from .recovery import recover
from .replay import reliance, replay
from .retention import beyond, damaged, last_commit, logs, reset
from .storage import LogFolder
from .verify import damaged_bodies
from .writer import JournalWriter

__all__ = ["Repair", "RepairedLog", "repair"]

_Step = Callable[[float], object]
"""Called with the current time, in seconds since 1970."""


@dataclass(slots=True)
class Repair:
    """The repair of a log, done or planned.

    Attributes:
        source: The log's name.
        actions: A line for each action.
        lost: First and end position of each range that is given up. If they are equal, no row is lost, but a record
            between rows.
        loses: Whether rows or records are given up.
        refused: Why nothing was done although it is necessary; empty if it was done.

    """

    source: str
    actions: list[str] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)
    loses: bool = False
    refused: str = ""


class RepairedLog(LogFolder):
    """A log as it will be after its files are repaired, for planning and doing a repair.

    The renamed segments are in `moved` with their new names, and those that are set aside with None; the small files
    that are set aside are in `gone`.
    """

    def __init__(self, log: LogFolder, moved: Mapping[int, int | None], gone: Collection[str]) -> None:
        super().__init__(log.filesystem, log.path)
        self._moved = moved
        self._gone = gone
        self._from = {home: name for name, home in moved.items() if home is not None}

    def segments(self) -> list[tuple[int, int]]:
        """Return first position and size in bytes of each segment, in order."""
        found = [(self._moved.get(first, first), size) for first, size in super().segments()]
        return sorted((first, size) for first, size in found if first is not None)

    def content(self, first: int) -> pa.Buffer | None:
        """Return the content of a segment, or None if there is none."""
        if first not in self._from and first in self._moved:
            return None
        return super().content(self._from.get(first, first))

    def mark(self) -> Mark | None:
        """Return the durable mark, or None if there is none."""
        if DURABLE in self._gone:
            raise JournalCorrupt(f"{self.path}/{DURABLE}: names a batch that no segment of this log has")
        return super().mark()

    def kept_gaps(self) -> list[Gap]:
        """Return the gaps in the log's file."""
        return [] if GAPS in self._gone else super().kept_gaps()

    def trimmed(self, uuid: str) -> int:
        """Return the position below which rows were trimmed."""
        return 0 if TRIMMED in self._gone else super().trimmed(uuid)


def repair(
    path: str | os.PathLike[str],
    source: str,
    *,
    apply: bool = False,
    accept_loss: bool = False,
    clock: Callable[[], float] = time.time,
) -> Repair:
    """Find what a log needs to be readable and writable again, and optionally do it.

    Args:
        path: The journal's folder, on this machine.
        source: The log's name.
        apply: Do it; otherwise only the report is made, and nothing is changed.
        accept_loss: Do it even if rows are lost. They become a gap, and their positions are not used again.
        clock: Returns the current time in seconds since 1970.

    Raises:
        JournalLocked: Another process writes to the log.
        JournalCorrupt: The log cannot be identified, so it cannot be repaired.
        JournalError: The disk failed.

    """
    folder = log_folder(path, source)
    if not folder.is_dir():
        raise LocalError(f"{folder}: there is no such log")
    if LogFolder.local(folder).is_awaited():
        return Repair(source)
    if not apply:
        found, _ = _plan(folder, source)
        if found.actions:
            found.refused = _refusal(found, accept_loss) or "it was not requested: use --apply"
        return found
    with Lock(folder / LOCK) as lock:
        _replay(folder)
        found, steps = _plan(folder, source)
        found.refused = _refusal(found, accept_loss)
        if found.refused:
            return found
        for step in steps:
            step(clock())
        if found.actions:
            JournalWriter.open(path, source, accept_loss=accept_loss, clock=clock, lock=lock).close()
    return found


def _refusal(found: Repair, accept_loss: bool) -> str:
    return "rows or records are lost: use --accept-loss to accept this" if found.loses and not accept_loss else ""


def _plan(folder: Path, source: str) -> tuple[Repair, list[_Step]]:
    """Return the actions, and the steps that must be done before the log can be opened."""
    found = Repair(source)
    steps: list[_Step] = []
    uuid = _identity(folder, found, steps)
    log = LogFolder.local(folder)
    gone = _small_files(log, folder, uuid, found, steps)
    moved = _segments(log, folder, uuid, gone, found, steps)
    repaired = RepairedLog(log, moved, gone)
    contradicted = _is_contradicted(repaired, uuid)
    if contradicted:
        repaired = RepairedLog(log, moved, [*gone, DURABLE])
    invalid = _cursors(repaired, folder, uuid, found, steps)
    condition = examine(repaired, uuid, last_commit(folder, uuid, but=invalid))
    _set_back(folder, uuid, condition.tail.position, found, steps)
    bodies = list(damaged_bodies(repaired, uuid, condition.mark))
    _describe(found, repaired, condition, bodies)
    if contradicted:
        # This cannot be detected after the mark is gone.
        bodies += [each for each in condition.lost if each[0].endswith(DURABLE)]
    if bodies:
        steps.append(lambda now: accept(folder, bodies, now))
    if contradicted:
        steps.append(partial(_set_aside, folder / DURABLE))
    return found, steps


def _replay(folder: Path) -> None:
    """Complete the log from redo files, if its identity is known. What names them is set aside if it is damaged."""
    try:
        reliance(folder)
    except JournalCorrupt:
        set_aside(folder / UNSYNCED)
    with suppress(JournalCorrupt):
        identity = load_identity(folder)
        if identity is not None:
            replay(folder, identity.uuid)


def _set_aside(path: Path, _: float) -> None:
    set_aside(path)


def _small_files(log: LogFolder, folder: Path, uuid: str, found: Repair, steps: list[_Step]) -> list[str]:
    """Return the damaged files other than segments, which are set aside."""
    checks: dict[str, tuple[Callable[[], object], str]] = {
        GAPS: (log.kept_gaps, "gaps whose segments were trimmed are forgotten"),
        TRIMMED: (lambda: log.trimmed(uuid), "rows before the first remaining one count as lost"),
    }
    gone = []
    for name, (check, loss) in checks.items():
        try:
            check()
        except JournalCorrupt as error:
            found.actions.append(f"set aside {name} ({error}): {loss}")
            found.loses = True
            steps.append(partial(_set_aside, folder / name))
            gone.append(name)
    return gone


def _segments(
    log: LogFolder, folder: Path, uuid: str, gone: list[str], found: Repair, steps: list[_Step]
) -> dict[int, int | None]:
    """Return the segments under a wrong name, each with its right one, if it has one here."""
    mark = None
    with suppress(JournalCorrupt):
        mark = log.mark()
    wrong = misplaced(log, uuid, mark, 0 if TRIMMED in gone else log.trimmed(uuid))
    for each in wrong:
        name = segment_name(each.name)
        if each.home is None:
            found.actions.append(f"set aside {name}, which is not a segment of this log: {each.why}")
        else:
            found.actions.append(f"rename {name} to {segment_name(each.home)}: {each.why}")
    if wrong:
        steps.append(lambda _: _place(folder, wrong))
    return {each.name: each.home for each in wrong}


def _place(folder: Path, wrong: list[Misplaced]) -> None:
    """Rename segments to their right names. All are set aside first, because two may have each other's names."""
    aside = [(set_aside(folder / segment_name(each.name)), each.home) for each in wrong]
    for path, home in aside:
        if path is not None and home is not None:
            with disk_errors(path, "be renamed"):
                path.rename(folder / segment_name(home))
                sync_folder(folder)


def _cursors(log: LogFolder, folder: Path, uuid: str, found: Repair, steps: list[_Step]) -> list[str]:
    """Return the readers' cursors that are damaged, or belong to another log."""
    first = min((position for position, _ in log.segments()), default=0)
    invalid = damaged(folder, uuid)
    for name in invalid:
        found.actions.append(f"set aside {COMMITTED}/{name}, and hold rows for that reader from {first} on")
        steps.append(partial(_hold_rows, folder, folder / COMMITTED / name, first))
    return invalid


def _hold_rows(folder: Path, path: Path, position: int, _: float) -> None:
    # A name that begins with a dot is not a reader.
    with disk_errors(path, "be renamed"):
        path.rename(path.with_name(f".{path.name}{DAMAGED}"))
    # A file may exist under a name that is not valid for a reader.
    with suppress(LocalError):
        reset(folder, path.name, position)


def _set_back(folder: Path, uuid: str, end: int, found: Repair, steps: list[_Step]) -> None:
    """Set the readers back that are beyond the end of the log, and that do not prove that it was longer."""
    for name, cursor in beyond(folder, uuid, end).items():
        found.actions.append(
            f"set the reader {name} back from position {shown_number(cursor.position)} to {end}, the end of the log: "
            "when it was set, nobody looked where that is"
        )
        steps.append(partial(_reset, folder, name, end))


def _reset(folder: Path, cursor: str, position: int, _: float) -> None:
    reset(folder, cursor, position)


def _identity(folder: Path, found: Repair, steps: list[_Step]) -> str:
    """Return the log's UUID. If its file is damaged, missing, or another log's, use the segments and readers."""
    why = f"{IDENTITY} is missing"
    found_uuids = [*_segment_uuids(folder), *logs(folder)]
    uuids = set(found_uuids)
    if len(uuids) > 1 and _ends_with_mark(LogFolder.local(folder)):
        # A cursor may be damaged, or belong to another log.
        uuids = set(_segment_uuids(folder))
    is_known = len(uuids) == 1 and (len(found_uuids) > 1 or _ends_with_mark(LogFolder.local(folder)))
    try:
        identity = load_identity(folder)
        if identity is not None:
            if identity.uuid in uuids or not is_known:
                return identity.uuid
            why = f"it has the UUID {identity.uuid}"
    except JournalCorrupt as error:
        why = str(error)
    if not is_known:
        raise JournalCorrupt(f"{folder}: {why}, and its segments do not identify the log; restore it from a copy")
    uuid = uuids.pop()
    found.actions.append(f"write {IDENTITY} again with the UUID {uuid}, which the segments have ({why})")
    steps.append(partial(_set_aside, folder / IDENTITY))
    steps.append(lambda now: _restore(folder, uuid, now))
    return uuid


def _ends_with_mark(log: LogFolder) -> bool:
    """Return True if the mark names a batch of the segments, which shows that they belong to this log."""
    with suppress(JournalCorrupt):
        mark = log.mark()
        return mark is not None and _has(log, mark)
    return False


def _has(log: LogFolder, mark: Mark) -> bool:
    """Return True if a segment has the batch that the mark names."""
    contents = (log.content(first) for first, _ in log.segments())
    return any(entry.digest == mark.head for each in contents if each is not None for entry in headers(each, 0))


def _is_contradicted(log: LogFolder, uuid: str) -> bool:
    """Return True if the mark belongs to another log: its batch is missing here, and the log continues after it."""
    with suppress(JournalCorrupt):
        mark = log.mark()
        if mark is not None and mark.head != genesis(uuid) and not _has(log, mark):
            tail = recover(log, uuid, None)
            longer = (tail.position, tail.first, tail.size) > (mark.end, mark.segment, mark.offset)
            return longer and not tail.damage
    return False


def _segment_uuids(folder: Path) -> Iterator[str]:
    """Yield the logs that the segments belong to, according to their schemas."""
    log = LogFolder.local(folder)
    for first, _ in log.segments():
        content = log.content(first)
        if content is not None:
            try:
                yield preamble_log(content)[1]
            except Malformed:
                continue


def _restore(folder: Path, uuid: str, now: float) -> None:
    identity = Identity(uuid, datetime.fromtimestamp(int(now), UTC))
    with disk_errors(folder / IDENTITY, "be written"):
        replace_file(folder / IDENTITY, encode(identity))


def _describe(found: Repair, log: LogFolder, condition: Condition, bodies: list[tuple[str, Damage]]) -> None:
    for name, damage in [*condition.lost, *bodies]:
        end = damage.first if damage.end is None else damage.end
        what = f"positions {damage.first} to {end - 1}" if end > damage.first else f"a record before {damage.first}"
        found.actions.append(f"record {what} as lost: {Path(name).name}: {damage.why}")
        found.lost.append((damage.first, end))
        found.loses = True
    if condition.mark_is_damaged:
        found.actions.append("set aside the mark, and write another one")
    elif condition.tail.size and condition.mark is not None and condition.tail.position > condition.mark.end:
        # Another writer has moved it meanwhile.
        if log.mark() == condition.mark:
            found.actions.append(f"move the mark to position {condition.tail.position}: complete batches follow it")
    if condition.lost and not condition.tail.size:
        found.actions.append(f"continue at position {condition.tail.position}, in another segment")
