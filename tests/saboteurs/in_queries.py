"""Mistakes on Spark's side: what is planned, passed over, read, and let go."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from weirpool.errors import JournalCorrupt, JournalError, JournalMissing
from weirpool.journal import retention
from weirpool.spark import driver, planning, reading, source
from weirpool.spark.cursor import Cursor
from weirpool.spark.offsets import Offset
from weirpool.spark.troubles import Troubles

from .patching import edited, replaced, together
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def committed_when_planned() -> Sabotage:
    edit = "return start if end", "end and self._source_driver().commit(end)\n    return start if end"
    return edited(source.JournalStreamReader, "latestOffset", edit)


def skipped_in_silence() -> Sabotage:
    return replaced((planning, "record", lambda *arguments: None))


def rows_that_end_at(silenced: type[JournalError]) -> Sabotage:
    real = reading._rows

    def rows(*arguments: Any) -> Any:
        with suppress(silenced):
            yield from real(*arguments)

    return replaced((reading, "_rows", rows))


def missing_journal_is_empty() -> Sabotage:
    return rows_that_end_at(JournalMissing)


def damaged_rows_skipped_by_tasks() -> Sabotage:
    return together(rows_that_end_at(JournalCorrupt), replaced((planning, "losses", lambda *arguments: [])))


def other_log_under_a_checkpoint() -> Sabotage:
    def same(*arguments: Any) -> None:
        """Compare nothing."""

    return together(
        replaced((driver, "same_logs", same), (planning, "same_logs", same)),
        edited(reading, "_reader", ("if reader.uuid != log:", "if False:")),
        edited(Offset, "ranges", ("if not self.logs.items() <= end.logs.items():", "if False:")),
    )


def slowest_reader_ignored() -> Sabotage:
    return edited(retention, "trim", ("min(positions.values())", "max(positions.values())"))


def name_taken_over() -> Sabotage:
    return together(
        edited(Cursor, "_owners", ("if owners and (", "if False and (")),
        edited(Cursor, "_acquire", ("elif mine is not None or part in owners", "elif False")),
        edited(retention, "_check_owner", ("recorded.query not in (None, query)", "False")),
    )


def claims_end_the_query() -> Sabotage:
    return edited(Cursor, "claim", ("if not _is_refused(error):", "if False:"))


def plans_end_the_query() -> Sabotage:
    return edited(Troubles, "insist", ("if not is_temporary(error) or (", "if True or ("))


def ends_end_the_query() -> Sabotage:
    edit = "if self._targets is not None or not is_temporary(error):", "if True:"
    return edited(driver.SourceDriver, "advance", edit)


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "committed when planned",
        "the journal may delete rows of a micro-batch that Spark has planned and not committed",
        "",
        "queries",
        committed_when_planned,
    ),
    Saboteur(
        "rows skipped silently",
        "skipped rows are not recorded as a gap",
        "PL2",
        "queries",
        skipped_in_silence,
    ),
    Saboteur(
        "missing journal treated as empty",
        "a task that cannot see the journal reads nothing and succeeds",
        "PL2",
        "queries",
        missing_journal_is_empty,
    ),
    Saboteur(
        "damage skipped by tasks",
        "a task skips damaged rows without the driver's knowledge",
        "PL2",
        "queries",
        damaged_rows_skipped_by_tasks,
    ),
    Saboteur(
        "another log under a checkpoint",
        "a query continues in a log that was deleted and created again",
        "PL4",
        "queries",
        other_log_under_a_checkpoint,
    ),
    Saboteur(
        "slowest reader ignored",
        "rows are deleted when the fastest reader has committed them",
        "PL3",
        "queries",
        slowest_reader_ignored,
    ),
    Saboteur(
        "reader's name taken over",
        "a second query commits under the name of the first",
        "PL3",
        "queries",
        name_taken_over,
    ),
    Saboteur(
        "absence taken for a refusal",
        "a query ends if the collector is away while it claims its reader's name",
        "",
        "absent collectors",
        claims_end_the_query,
    ),
    Saboteur(
        "absence ends a plan",
        "a query ends if the collector is away while a micro-batch is planned",
        "",
        "absent collectors",
        plans_end_the_query,
    ),
    Saboteur(
        "absence ends a look",
        "a query ends if the collector is away while the end of a micro-batch is decided",
        "",
        "absent collectors",
        ends_end_the_query,
    ),
)
