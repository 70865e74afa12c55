"""`weirpool journal ls`: the logs of a journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import typer

from ...errors import JournalError
from ...texts import counted
from ..console import complain, say, say_json
from ..exits import FAILED
from .selection import AsJson, Folder, Source, selected_logs

if TYPE_CHECKING:
    from ...journal import Journal

__all__ = ["NOTHING_YET", "ls"]

NOTHING_YET: Final = "nothing collected yet"
DAMAGED: Final = "rows are damaged; `weirpool journal verify` shows which and why"


def ls(folder: Folder, source: Source = None, as_json: AsJson = False) -> None:
    """List the logs of a journal, with their positions, sizes and gaps.

    Damaged logs are named on standard error, the others are listed, and the exit code is 1.

    Example: weirpool journal ls data/flights
    """
    journal, names = selected_logs(folder, source)
    sound = True
    for name in names:
        fields = _summary(journal, name)
        problem = fields.get("error") or (DAMAGED if fields.get("damaged") else "")
        if problem:
            complain(f"{name}: {problem}")
            sound = False
        if as_json:
            say_json({"source": name} | fields)
        elif "error" not in fields:
            say(f"{name}: {_line(fields)}")
    if not sound:
        raise typer.Exit(FAILED)


def _summary(journal: Journal, name: str) -> dict[str, Any]:
    """Return the fields of a log for `ls`, or only an error if the log cannot be read."""
    try:
        if journal.is_awaited(name):
            return {"uuid": ""}
        reader = journal.reader(name)
        return {
            "uuid": reader.uuid,
            "first": reader.first,
            "end": reader.end,
            "bytes": reader.bytes_between(reader.first, reader.end),
            "gaps": len(reader.gaps()),
            "damaged": reader.damage(),
        }
    except JournalError as error:
        return {"error": str(error)}


def _line(fields: dict[str, Any]) -> str:
    if not fields["uuid"]:
        return NOTHING_YET
    damaged = "".join(f", {first:,} to {end - 1:,} damaged" for first, end in fields["damaged"])
    span = f"positions {fields['first']:,} to {fields['end']:,}, {fields['bytes']:,} bytes"
    return f"{span}, {counted(fields['gaps'], 'gap')}{damaged}"
