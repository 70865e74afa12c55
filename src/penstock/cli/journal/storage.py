"""`penstock journal trim`, `seal` and `cp`: what a journal keeps, and copies of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ...errors import JournalError, LocalError
from ..console import say, say_json
from .selection import AsJson, Folder, Source, for_each_log, position_of, selected_logs

if TYPE_CHECKING:
    from ...journal import Journal

__all__ = ["cp", "seal", "trim"]


def trim(
    folder: Folder,
    to: Annotated[
        str, Option("--to", metavar="PLACE", help="Keep rows from here on: a position, -N, latest, or a time.")
    ],
    source: Source = None,
    force: Annotated[bool, Option("--force", help="Also delete rows that a reader has not committed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete old rows, in whole segments. Rows that a reader still needs are kept, unless --force is given.

    A collector may be running. Sealed rows stay: how long is an option of the sealer.

    Example: penstock journal trim data/flights --to 2026-01-31T00:00:00+00:00
    """
    journal, names = selected_logs(folder, source)
    places = _checked_places(journal, names, to, force)

    def trim_one(name: str) -> None:
        position = places[name]
        if isinstance(position, JournalError):
            raise position
        first = journal.delete(name, position)
        if as_json:
            say_json({"source": name, "position": position, "first": first})
        else:
            say(f"{name}: the first row is at {first:,}")

    for_each_log(names, trim_one)


def _checked_places(journal: Journal, names: list[str], to: str, force: bool) -> dict[str, int | JournalError]:
    """Return where each log is to begin, or why it cannot be read.

    Raises:
        LocalError: A reader needs rows before that, and no row of any log was deleted.

    """
    places: dict[str, int | JournalError] = {}
    waiting = []
    for name in names:
        try:
            position = places[name] = position_of(journal.reader(name), to, "--to")
            behind = [each for each in journal.lags(name) if each.position < position]
        except JournalError as error:
            places[name] = error
            continue
        if behind:
            listed = ", ".join(f"{each.reader} at {each.position:,}" for each in behind)
            waiting.append(f"readers of {name!r} have not committed the rows below {position:,}: {listed}; ")
    if waiting and not force:
        raise LocalError(
            f"{''.join(waiting)}wait for them, drop them with `penstock journal forget`, or delete rows that they need "
            "with --force"
        )
    return places


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
    as_json: AsJson = False,
) -> None:
    """Turn complete segments into Parquet files, in the journal's folder or in an object store.

    The last segment of each log stays, because it is written to. A collector may be running.

    Example: penstock journal seal data/flights --store s3://lake/market
    """
    from ...archive import SealOptions
    from ...archive.sealing import seal as seal_one

    journal, names = selected_logs(folder, source)
    options = SealOptions(store=store)

    def seal_log(name: str) -> None:
        count = 0
        while (sealed := seal_one(journal.path, name, options, force=force)) is not None:
            count += 1
            if as_json:
                say_json(dataclasses.asdict(sealed))
            else:
                share = 100 * sealed.size / max(1, sealed.raw_bytes)
                say(f"{name}: sealed {sealed.first:,} to {sealed.end:,}, {sealed.size:,} bytes ({share:.0f} %)")
        if not count and not as_json:
            say(f"{name}: nothing to seal" + ("" if force else "; --force also seals what is small and recent"))

    for_each_log(names, seal_log)


def cp(
    folder: Folder,
    target: Annotated[Path, Argument(help="The other journal: a folder, created if necessary.")],
    source: Source = None,
    as_json: AsJson = False,
) -> None:
    """Copy a journal, or bring an earlier copy up to date. A collector may be running.

    The copy has the same rows at the same positions. Secrets and the positions of readers are not copied.

    Example: penstock journal cp data/flights /mnt/backup/flights
    """
    journal, names = selected_logs(folder, source)

    def copy(name: str) -> None:
        copied = journal.copy(name, target)
        if as_json:
            say_json({"source": name, "first": copied.first, "end": copied.end, "copied": copied.size})
        else:
            say(f"{name}: copied {copied.size:,} bytes; the copy holds {copied.first:,} to {copied.end:,}")

    for_each_log(names, copy)
