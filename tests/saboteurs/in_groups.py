"""Mistakes in groups: what a successor knows of the readers, and which stores may hold a group."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from weirpool.errors import StoreError
from weirpool.journal import asks, retention
from weirpool.objects import probe as probing
from weirpool.objects.ports import Store
from weirpool.replica import logs, ownership, recall
from weirpool.replica import sequence as sequences

from .patching import edited, replaced
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def readers_not_restored() -> Sabotage:
    return replaced((recall, "restore_readers", lambda folder, part: None))


def answered_at_once() -> Sabotage:
    return replaced((asks, "ask_of", lambda *arguments: None))


def first_readers_only() -> Sabotage:
    return replaced((logs.Logs, "record", lambda self, source, folder: self.confirm()))


def snapshots_without_readers() -> Sabotage:
    return edited(ownership, "_all_parts", ("readers=logs[source].readers", "readers={}"))


def dropped_readers_restored() -> Sabotage:
    return edited(retention, "restore", ("if name not in found:", "if False:"))


def unknown_taken_for_none() -> Sabotage:
    return replaced((asks, "confirm", lambda folder: None))


def former_owner_not_fenced() -> Sabotage:
    return edited(recall, "_settle", (".fence(part.uuid)", ".newest()"))


def floor_not_heeded() -> Sabotage:
    return replaced((retention, "_check_floor", lambda *arguments: None))


def conditions_believed() -> Sabotage:
    return replaced((probing, "_compare", lambda store, name: None))


def same_contents() -> Sabotage:
    return replaced((probing, "_SECOND", b"first"))


def unclear_passes() -> Sabotage:
    compare = probing._compare

    def careless(store: Store, name: str) -> None:
        try:
            compare(store, name)
        except probing.ConditionIgnored:
            raise
        except StoreError:
            return

    # It goes on where the store answers again.
    return replaced((probing, "_compare", careless), (sequences.Sequence, "create", lambda self, number, data: True))


def probe_left() -> Sabotage:
    return edited(probing, "probe", ("store.delete([name])", "pass"))


def no_second_line() -> Sabotage:
    edit = "found = self._sequence.header(number)\n    if found is None and not"
    return edited(ownership.Ownership, "_write", (edit, "found = None\n    if not"))


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "readers lost with their machine",
        "a new owner does not restore the readers of its logs",
        "",
        "successors",
        readers_not_restored,
    ),
    Saboteur(
        "readers answered too early",
        "a reader is told that its claim is recorded before the store of the group has it",
        "",
        "successors",
        answered_at_once,
    ),
    Saboteur(
        "readers recorded once",
        "bundles have the readers of a log only as they were when it was new",
        "",
        "successors",
        first_readers_only,
    ),
    Saboteur(
        "snapshots without readers",
        "a snapshot says of a log with new rows that it has no readers",
        "",
        "successors",
        snapshots_without_readers,
    ),
    Saboteur(
        "dropped readers restored",
        "a reader that was dropped elsewhere is known again where its cursor was left",
        "",
        "successors",
        dropped_readers_restored,
    ),
    Saboteur(
        "unknown readers taken for none",
        "rows are removed on a machine that does not own the group, and does not know its readers",
        "",
        "successors",
        unknown_taken_for_none,
    ),
    Saboteur(
        "former owner not fenced",
        "a former owner that was paused removes rows that its successor has promised to a reader",
        "",
        "successors",
        former_owner_not_fenced,
    ),
    Saboteur(
        "floor not heeded",
        "a reader is promised rows while they are removed",
        "",
        "successors",
        floor_not_heeded,
    ),
    Saboteur(
        "conditions believed",
        "a store is not asked whether its conditional writes hold",
        "",
        "careless stores",
        conditions_believed,
    ),
    Saboteur(
        "a store asked twice the same",
        "a repeated request is taken for a second one that has succeeded",
        "",
        "careless stores",
        same_contents,
    ),
    Saboteur(
        "unclear answers pass",
        "a store that did not answer whether its conditions hold is used",
        "",
        "careless stores",
        unclear_passes,
    ),
    Saboteur(
        "questions left in a store",
        "the object that was created to ask a store stays there",
        "",
        "careless stores",
        probe_left,
    ),
    Saboteur(
        "next bundle not looked at",
        "an owner relies on the condition alone, and writes over its successor when the store ignores it",
        "",
        "careless stores",
        no_second_line,
    ),
)
