"""Making a damaged log usable again: first what would be done, then doing it.

What is gone stays gone. Rows that can be read stay where they are; positions that cannot be read are recorded as lost.
Nothing that is damaged is changed or deleted: a file that must be replaced is renamed first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from ..errors import JournalCorrupt, LocalError
from .damage import Damage
from .disk import disk_errors, replace_file
from .format import FORMAT, Malformed, preamble_log
from .gaps import load as load_gaps
from .identity import load as load_identity
from .layout import COMMITTED, GAPS, IDENTITY, LOCK, log_folder
from .lock import Lock
from .losses import DAMAGED, Condition, accept, examine, set_aside
from .retention import commit, commits, is_damaged
from .storage import LogFolder
from .verify import damaged_bodies
from .writer import JournalWriter

__all__ = ["Repair", "repair"]

_Step = Callable[[float], object]
"""Takes the time."""


@dataclass(slots=True)
class Repair:
    """What is done to a log, or would be.

    Attributes:
        source: The log's name.
        actions: A line for each thing that is done.
        lost: First and end position of each range that is given up. Where both are the same, no row is lost, but a
            record between rows.
        loses: Whether rows or records are given up.
        whole: Whether these are all the actions: more may show when they are done.
        refused: Why nothing was done although there was something to do; empty if it was done.

    """

    source: str
    actions: list[str] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)
    loses: bool = False
    whole: bool = True
    refused: str = ""


def repair(
    path: str | os.PathLike[str],
    source: str,
    *,
    apply: bool = False,
    accept_loss: bool = False,
    clock: Callable[[], float] = time.time,
) -> Repair:
    """Look what a log needs so that it can be read and written again, and do it if that is wanted.

    Args:
        path: The journal's folder, on this machine.
        source: The log's name.
        apply: Do it; else only the report is made, and nothing is changed.
        accept_loss: Do it although rows are lost. They become a gap, and no other rows get their positions.
        clock: Says what time it is, in seconds since 1970.

    Raises:
        JournalLocked: Somebody writes to the log.
        JournalCorrupt: Nothing tells what the log is, so that it cannot be repaired.
        JournalError: The disk refused.

    """
    folder = log_folder(path, source)
    if not folder.is_dir():
        raise LocalError(f"{folder}: there is no such log")
    if not apply:
        found, _ = _look(folder, source)
        if found.actions:
            found.refused = _refusal(found, accept_loss) or "it was not asked for: use --apply"
        return found
    with Lock(folder / LOCK) as lock:
        actions: list[str] = []
        while True:
            found, steps = _look(folder, source)
            found.actions[:0] = actions
            found.refused = _refusal(found, accept_loss)
            if found.refused:
                return found
            for step in steps:
                step(clock())
            if found.whole:
                break
            actions = found.actions
        if found.actions:
            JournalWriter.open(path, source, accept_loss=accept_loss, clock=clock, lock=lock).close()
    return found


def _refusal(found: Repair, accept_loss: bool) -> str:
    return "rows or records are lost: use --accept-loss if that may be" if found.loses and not accept_loss else ""


def _look(folder: Path, source: str) -> tuple[Repair, list[_Step]]:
    """Return what there is to do, and the steps that do it before the log can be opened."""
    found = Repair(source)
    steps: list[_Step] = []
    uuid = _identity(folder, found, steps)
    _records(folder, found, steps)
    if not found.whole:
        return found, steps
    condition = examine(folder, uuid)
    bodies = list(damaged_bodies(LogFolder.local(folder), uuid, condition.mark))
    _describe(found, condition, bodies)
    if bodies:
        steps.append(lambda now: accept(folder, bodies, now))
    return found, steps


def _records(folder: Path, found: Repair, steps: list[_Step]) -> None:
    """Look at the small files, without which nobody can tell what else there is to do."""
    first = min((position for position, _ in LogFolder.local(folder).segments()), default=0)
    for path in _damaged_commits(folder):
        found.actions.append(f"set aside {COMMITTED}/{path.name}, and hold rows for that reader from {first} on")
        steps.append(partial(_hold, folder, path, first))
        found.whole = False
    try:
        load_gaps(folder)
    except JournalCorrupt as error:
        found.actions.append(f"set aside {GAPS} ({error}): gaps whose segments were trimmed are forgotten")
        steps.append(lambda _: set_aside(folder / GAPS))
        found.whole, found.loses = False, True


def _hold(folder: Path, path: Path, position: int, _: float) -> None:
    # A name that begins with a dot is no reader's.
    with disk_errors(path, "be renamed"):
        path.rename(path.with_name(f".{path.name}{DAMAGED}"))
    commit(folder, path.name, position)


def _identity(folder: Path, found: Repair, steps: list[_Step]) -> str:
    """Return the log's UUID. If its file is damaged or gone, the segments tell it."""
    why = f"{IDENTITY} is missing"
    try:
        identity = load_identity(folder)
        if identity is not None:
            return identity.uuid
    except JournalCorrupt as error:
        why = str(error)
    uuids = set(_uuids(folder))
    if len(uuids) != 1:
        raise JournalCorrupt(f"{folder}: {why}, and its segments do not tell what log this is; restore it from a copy")
    uuid = uuids.pop()
    found.actions.append(f"write {IDENTITY} anew with the UUID {uuid}, which the segments tell ({why})")
    steps.append(lambda _: set_aside(folder / IDENTITY))
    steps.append(lambda now: _restore(folder, uuid, now))
    return uuid


def _uuids(folder: Path) -> Iterator[str]:
    log = LogFolder.local(folder)
    for first, _ in log.segments():
        content = log.content(first)
        if content is not None:
            try:
                yield preamble_log(content)[1]
            except Malformed:
                continue


def _restore(folder: Path, uuid: str, now: float) -> None:
    fields = {"penstock": FORMAT, "uuid": uuid, "created": datetime.fromtimestamp(int(now), UTC), "request": None}
    with disk_errors(folder / IDENTITY, "be written"):
        replace_file(folder / IDENTITY, msgspec.json.encode(fields) + b"\n")


def _damaged_commits(folder: Path) -> list[Path]:
    try:
        commits(folder)
    except JournalCorrupt:
        return [path for path in sorted((folder / COMMITTED).iterdir()) if is_damaged(path)]
    return []


def _describe(found: Repair, condition: Condition, bodies: list[tuple[str, Damage]]) -> None:
    for name, damage in [*condition.lost, *bodies]:
        end = damage.first if damage.end is None else damage.end
        what = f"positions {damage.first} to {end - 1}" if end > damage.first else f"a record before {damage.first}"
        found.actions.append(f"record {what} as lost: {Path(name).name}: {damage.why}")
        found.lost.append((damage.first, end))
        found.loses = True
    if condition.mark_is_damaged:
        found.actions.append("set aside the mark, and write another one")
    if condition.lost and not condition.tail.size:
        found.actions.append(f"go on at position {condition.tail.position}, in another segment")
