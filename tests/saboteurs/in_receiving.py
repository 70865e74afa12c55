"""Mistakes in receiving: micro-batches that are stored twice, in part, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from weirpool.receiving import ledger, log, stages

from .patching import edited
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def push_into_a_micro_batch() -> Sabotage:
    return edited(log.ReceivedLog, "append", ("self._settle()", "pass"))


def commit_into_a_micro_batch() -> Sabotage:
    return edited(log.ReceivedLog, "commit", ("self._settle()", "pass"))


def unfinished_micro_batch_left() -> Sabotage:
    return edited(log.ReceivedLog, "__init__", ("self._settle()", "pass"))


def plan_not_durable() -> Sabotage:
    return edited(log.ReceivedLog, "_write_plan", ("fsync=self._fsync", "fsync=False"))


def plan_written_late() -> Sabotage:
    plan = "self._write_plan(Plan(state, list(stages)))"
    return edited(
        log.ReceivedLog,
        "_commit",
        (f"if size > BATCH_BYTES:\n            {plan}\n        self._roll(state, stages)",
         f"self._roll(state, stages)\n        if size > BATCH_BYTES:\n            {plan}"),
    )  # fmt: skip


def first_rows_count_as_all() -> Sabotage:
    return edited(
        log.ReceivedLog,
        "_roll",
        ("self._write(batch, msgspec.structs.replace(state, done=done))", "self._write(batch, state)"),
    )


def rows_repeated_after_a_stop() -> Sabotage:
    return edited(log.ReceivedLog, "_roll", ("self._writer.position - state.first", "0"))


def ledger_not_durable() -> Sabotage:
    return edited(ledger.Ledger, "enter", ("fsync=self._fsync", "fsync=False"))


def ledger_not_entered() -> Sabotage:
    return edited(log.ReceivedLog, "_finish", ("self._ledger.enter(state.query, entry)", "pass"))


def stage_not_synced() -> Sabotage:
    return edited(stages.StageWriter, "finish", ("os.fsync(descriptor)", "pass"))


def name_of_a_stage_not_synced() -> Sabotage:
    return edited(stages.StageFolder, "publish", ("sync_folder(self._folder)", "pass"))


def stages_dropped_early() -> Sabotage:
    return edited(
        log.ReceivedLog,
        "_commit",
        (
            "        self._roll(state, stages)",
            "        self.stages.drop_until(query, batch)\n        self._roll(state, stages)",
        ),
    )


SABOTEURS: Sequence[Saboteur] = tuple(
    Saboteur(name, mistake, "", "micro-batches", sabotage)
    for name, mistake, sabotage in (
        (
            "push into a micro-batch",
            "a row is pushed into the middle of a micro-batch that a full disk has stopped",
            push_into_a_micro_batch,
        ),
        (
            "commit into a micro-batch",
            "a micro-batch is committed into the middle of another one",
            commit_into_a_micro_batch,
        ),
        (
            "unfinished micro-batch left",
            "the next process does not complete a micro-batch",
            unfinished_micro_batch_left,
        ),
        ("plan not durable", "the plan of a large micro-batch is not synced before its first rows", plan_not_durable),
        ("plan written late", "the plan of a large micro-batch is written after its rows", plan_written_late),
        ("first rows count as all", "the first rows of a micro-batch say that it is complete", first_rows_count_as_all),
        (
            "rows repeated after a stop",
            "the rows that a log has of a micro-batch are appended again",
            rows_repeated_after_a_stop,
        ),
        (
            "ledger not durable",
            "the ledger of micro-batches is not synced before another one is appended",
            ledger_not_durable,
        ),
        ("ledger not entered", "micro-batches are not entered, so that only the last one is known", ledger_not_entered),
        ("stage not synced", "the rows of a stage are not synced before it counts as stored", stage_not_synced),
        (
            "name of a stage not synced",
            "the folder of stages is not synced when one gets its name",
            name_of_a_stage_not_synced,
        ),
        ("stages dropped early", "stages are removed before their rows are in the log", stages_dropped_early),
    )
)
