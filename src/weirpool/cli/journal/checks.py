"""`weirpool journal verify` and `repair`: damage, and what can be done about it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ...texts import counted, shown
from ..console import complain, say, say_json
from ..exits import FAILED
from .listing import NOTHING_YET
from .selection import AsJson, Folder, Source, for_each_log, selected_logs

if TYPE_CHECKING:
    from ...journal import Report

__all__ = ["repair", "verify"]


def verify(
    folder: Folder,
    source: Source = None,
    against: Annotated[
        str | None, Option("--against", metavar="OTHER", help="Another journal, with copies of these logs.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read and check every batch of a journal; exit with 1 if one is damaged or differs from its copy.

    Example: weirpool journal verify data/flights --against /mnt/backup/flights
    """
    journal, names = selected_logs(folder, source)
    reports = journal.verify(names, against)
    for name in names:
        report = reports[name]
        for problem in report.problems:
            complain(f"{name}: {problem}")
        if as_json:
            say_json(_fields(report))
        elif report.uuid:
            sealed = f", {report.sealed:,} of them sealed" if report.sealed and report.sound else ""
            span = f"{report.rows:,} rows from {report.first:,} to {report.end:,} are sound{sealed}"
            compared = f"; {report.compared}" if report.compared and report.sound else ""
            say(f"{name}: {span}; {counted(len(report.gaps), 'gap')}{compared}; head {report.head}")
        elif report.sound:
            say(f"{name}: {NOTHING_YET}")
    if not all(reports[name].sound for name in names):
        raise typer.Exit(FAILED)


def _fields(report: Report) -> dict[str, Any]:
    gaps = [{"position": gap.position, "reason": gap.reason, "lost": gap.lost} for gap in report.gaps]
    return dataclasses.asdict(report) | {"gaps": gaps, "sound": report.sound}


def repair(
    folder: Folder,
    source: Source = None,
    apply: Annotated[bool, Option("--apply", help="Repair; without it, the repair is only shown.")] = False,
    accept_loss: Annotated[
        bool, Option("--accept-loss", help="Repair even if rows are lost; record their positions as a gap.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show how to repair a damaged journal, and repair it with --apply. No collector may be running.

    Readable rows are kept. Damaged files are kept unchanged or renamed to end in .damaged.
    The exit code is 1 if anything remains to be repaired.

    Example: weirpool journal repair data/flights --apply --accept-loss
    """
    journal, names = selected_logs(folder, source)
    refused = False

    def repair_one(name: str) -> None:
        nonlocal refused
        found = journal.repair(name, apply=apply, accept_loss=accept_loss)
        refused = refused or bool(found.refused)
        if as_json:
            say_json(dataclasses.asdict(found))
            return
        for action in found.actions or ["nothing to do"]:
            say(f"{name}: {shown(action)}")
        if found.refused:
            say(f"{name}: not repaired: {found.refused}")

    for_each_log(names, repair_one)
    if refused:
        raise typer.Exit(FAILED)
