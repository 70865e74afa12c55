"""Mistakes in what readers record: positions that the log does not have, and commits that come between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from weirpool.journal import identity, reopening, retention
from weirpool.journal.identity import Identity

from .patching import edited, replaced
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def position_beyond_the_end() -> Sabotage:
    return edited(retention, "_check_end", ("if position > end:", "if False:"))


def deleted_before_compared() -> Sabotage:
    return edited(
        retention,
        "trim",
        ("        _check_end(folder, log, reader, position, recorded)\n", ""),
        ("        ask = ", "        _check_end(folder, log, reader, position, recorded)\n        ask = "),
    )


def committed_without_the_lock() -> Sabotage:
    @contextmanager
    def locked(folder: Path) -> Iterator[Identity]:
        found = identity.load(folder)
        assert found is not None
        yield found

    return replaced((retention, "locked", locked))


def loss_below_a_reader_unnoticed() -> Sabotage:
    return replaced(
        (reopening, "last_commit", lambda folder, uuid: (0, "")), (reopening, "beyond", lambda folder, uuid, end: {})
    )


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "position beyond the end",
        "a reader's position is recorded although the log ends before it",
        "THREATS 113",
        "readers",
        position_beyond_the_end,
    ),
    Saboteur(
        "deleted before compared",
        "rows are deleted for a position that is refused",
        "THREATS 113",
        "readers",
        deleted_before_compared,
    ),
    Saboteur(
        "committed without the lock",
        "two readers of one name commit at once, and the later position is lost",
        "",
        "readers",
        committed_without_the_lock,
    ),
    Saboteur(
        "loss below a reader unnoticed",
        "a log that ends before one of its readers is opened",
        "",
        "readers",
        loss_below_a_reader_unnoticed,
    ),
)
