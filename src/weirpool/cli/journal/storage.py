"""`weirpool journal trim`, `seal` and `cp`: what a journal keeps, and copies of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ...errors import JournalError, LocalError
from ...texts import counted
from ..confirm import DryRun, Yes, confirm
from ..console import say, say_json
from .selection import AsJson, Folder, Source, for_each_log, limited_position, selected_logs

if TYPE_CHECKING:
    from ...archive import SealOptions
    from ...journal import Extent, Journal

__all__ = ["cp", "seal", "trim"]


def trim(
    folder: Folder,
    to: Annotated[
        str, Option("--to", metavar="PLACE", help="Keep rows from here on: a position, -N, latest, or a time.")
    ],
    source: Source = None,
    force: Annotated[bool, Option("--force", help="Also delete rows that a reader has not committed.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete old rows, in whole segments. Rows that a reader still needs are kept, unless --force is given.

    On a terminal it asks first. A collector may be running. Sealed rows stay: how long is an option of the sealer.

    Example: weirpool journal trim data/flights --to 2026-01-31T00:00:00+00:00 --dry-run
    """
    journal, names = selected_logs(folder, source)
    plans = _checked_plans(journal, names, to, force)
    if not dry_run:
        _confirm_trim(plans, yes)

    def trim_one(name: str) -> None:
        plan = plans[name]
        if isinstance(plan, JournalError):
            raise plan
        if not dry_run:
            plan = replace(plan, first=journal.delete(name, plan.position, force=force))
        if as_json:
            say_json({"source": name} | plan.fields(dry_run))
        else:
            say(f"{name}: {plan.line(dry_run)}")

    for_each_log(names, trim_one)


@dataclass(frozen=True)
class TrimPlan:
    """What a trim deletes of a log."""

    position: int
    """Rows below it are deleted, in whole segments."""
    free: list[Extent]
    """These segments."""
    first: int
    """The first row that remains."""

    @property
    def rows(self) -> int:
        """The number of rows in the segments."""
        return sum(each.end - each.first for each in self.free)

    @property
    def size(self) -> int:
        """Their bytes."""
        return sum(each.size for each in self.free)

    def fields(self, dry_run: bool) -> dict[str, Any]:
        """Return the plan for JSON."""
        found = {"position": self.position, "first": self.first, "rows": self.rows, "bytes": self.size}
        return found | {"dry_run": dry_run}

    def line(self, dry_run: bool) -> str:
        """Return the plan as a line."""
        rest = f"the first row {'would be' if dry_run and self.free else 'is'} at {self.first:,}"
        if not self.free:
            return f"nothing to delete; {rest}"
        begin, end = self.free[0].first, self.free[-1].end
        what = f"{counted(self.rows, 'row')} ({self.size:,} bytes), positions {begin:,} to {end - 1:,}"
        # Sealed rows are still there, and so the log begins before what is deleted.
        copies = "the local copies of " if self.first < begin else ""
        return f"{'would delete' if dry_run else 'deleted'} {copies}{what}; {rest}"


def _checked_plans(journal: Journal, names: list[str], to: str, force: bool) -> dict[str, TrimPlan | JournalError]:
    """Return what is to be deleted of each log, or why it cannot be read.

    Raises:
        LocalError: A reader needs some of it, and no row of any log was deleted.

    """
    plans: dict[str, TrimPlan | JournalError] = {}
    waiting = []
    for name in names:
        try:
            reader = journal.reader(name)
            position = limited_position(reader, to, "--to")
            free = journal.deletable(name, position)
            first = free[-1].end if free and free[0].first == reader.first else reader.first
            plans[name] = TrimPlan(position, free, first)
            behind = [each for each in journal.lags(name) if each.position < position]
        except JournalError as error:
            plans[name] = error
            continue
        if behind:
            listed = ", ".join(f"{each.reader} at {each.position:,}" for each in behind)
            waiting.append(f"readers of {name!r} have not committed the rows below {position:,}: {listed}; ")
    if waiting and not force:
        raise LocalError(
            f"{''.join(waiting)}wait for them, drop them with `weirpool journal forget`, or delete rows that they need "
            "with --force"
        )
    return plans


def _confirm_trim(plans: dict[str, TrimPlan | JournalError], yes: bool) -> None:
    """Ask before rows are deleted, with what they are."""
    found = {name: plan for name, plan in plans.items() if isinstance(plan, TrimPlan) and plan.free}
    if found:
        listed = "".join(f"{name}: {plan.line(dry_run=True)}\n" for name, plan in found.items())
        rows = counted(sum(plan.rows for plan in found.values()), "row")
        confirm(f"{listed}Delete {rows} of {counted(len(found), 'log')}?", yes)


def seal(
    folder: Folder,
    source: Source = None,
    store: Annotated[
        str | None,
        Option(
            "--store", metavar="URI", help="Where sealed segments go; by default the journal's store, or its folder."
        ),
    ] = None,
    force: Annotated[bool, Option("--force", help="Also seal segments that are small and recent.")] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Turn complete segments into Parquet files, in the journal's folder or in an object store.

    The last segment of each log stays, because it is written to. A collector may be running.

    Example: weirpool journal seal data/flights --store s3://lake/market
    """
    from ...archive import SealOptions

    journal, names = selected_logs(folder, source)
    options = SealOptions(store=store)

    def seal_log(name: str) -> None:
        fields: dict[str, Any] = {"source": name, "dry_run": dry_run}
        none = "nothing to seal" + ("" if force else "; --force also seals what is small and recent")
        nothing = [(none, {"first": None, "end": None, "size": 0, "raw_bytes": 0})]
        steps = _due(journal, name, options, force) if dry_run else _sealed(journal, name, options, force)
        for line, step in chain([first], steps) if (first := next(steps, None)) is not None else nothing:
            if as_json:
                say_json(fields | step)
            else:
                say(f"{name}: {line}")

    for_each_log(names, seal_log)


def _sealed(journal: Journal, name: str, options: SealOptions, force: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Seal a log; yield each file as a line, and for JSON."""
    from ...archive.sealing import seal

    while (file := seal(journal.path, name, options, force=force)) is not None:
        share = 100 * file.size / max(1, file.raw_bytes)
        yield f"sealed {file.first:,} to {file.end:,}, {file.size:,} bytes ({share:.0f} %)", dataclasses.asdict(file)


def _due(journal: Journal, name: str, options: SealOptions, force: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each file that sealing a log would make, as a line, and for JSON."""
    from ...archive.sealing import due

    for each in due(journal.path, name, options, force=force):
        fields = {"first": each.first, "end": each.end, "size": None, "raw_bytes": each.size}
        yield f"would seal {each.first:,} to {each.end:,}, {each.size:,} bytes before compression", fields


def cp(
    folder: Folder,
    target: Annotated[Path, Argument(help="The other journal: a folder, created if necessary.")],
    source: Source = None,
    as_json: AsJson = False,
) -> None:
    """Copy a journal, or bring an earlier copy up to date. A collector may be running.

    The copy has the same rows at the same positions. Secrets and the positions of readers are not copied.

    Example: weirpool journal cp data/flights /mnt/backup/flights
    """
    journal, names = selected_logs(folder, source)

    def copy(name: str) -> None:
        copied = journal.copy(name, target)
        if as_json:
            say_json({"source": name, "first": copied.first, "end": copied.end, "copied": copied.size})
        else:
            say(f"{name}: copied {copied.size:,} bytes; the copy holds {copied.first:,} to {copied.end:,}")

    for_each_log(names, copy)
