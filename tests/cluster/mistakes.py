"""Known mistakes, which the laboratory must find: they are put into the code of the collector's machine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from tests.saboteurs.patching import edited
from tests.saboteurs.saboteur import Saboteur
from weirpool.archive.sealing import _Log
from weirpool.journal.collect import Collector
from weirpool.serving import service

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def last_row_not_sealed() -> Sabotage:
    return edited(_Log, "_file", ("self.reader.read(first, end), origin", "self.reader.read(first, end - 1), origin"))


def range_served_off_by_one() -> Sabotage:
    return edited(
        service,
        "chunks",
        ("if _is_wanted(run, start, end):", "if False:"),
        ("_rows(hot, first, stop, at,", "_rows(hot, first + 1, stop, at,"),
    )


def row_skipped_on_take_over() -> Sabotage:
    first = "rows and log.position and not self.progress.rows"
    edit = f"taken = batch_of(builder.take())[1:] if {first} else builder.take()"
    return edited(Collector, "_record", ("taken = builder.take()", edit))


SABOTEURS: Final = (
    Saboteur(
        "last row not sealed",
        "a sealed segment lacks its last row, and its entry in the manifest says so",
        "",
        "clusters",
        last_row_not_sealed,
    ),
    Saboteur(
        "range served off by one",
        "a collector serves the rows of a batch from the second one on",
        "",
        "clusters",
        range_served_off_by_one,
    ),
    Saboteur(
        "row skipped on take-over",
        "a collector that has taken over drops the first item that it receives",
        "",
        "clusters",
        row_skipped_on_take_over,
    ),
)
