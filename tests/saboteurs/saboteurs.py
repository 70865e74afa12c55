"""All known mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from . import (
    in_archive,
    in_collector,
    in_group_commit,
    in_groups,
    in_isolation,
    in_journal,
    in_ledger,
    in_limits,
    in_queries,
    in_queue,
    in_readers,
    in_receiving,
    in_rolling,
    in_scheduler,
    in_sessions,
    in_starts,
    in_turns,
)
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

SABOTEURS: Final[Sequence[Saboteur]] = (
    *in_collector.SABOTEURS,
    *in_sessions.SABOTEURS,
    *in_isolation.SABOTEURS,
    *in_journal.SABOTEURS,
    *in_group_commit.SABOTEURS,
    *in_receiving.SABOTEURS,
    *in_archive.SABOTEURS,
    *in_groups.SABOTEURS,
    *in_queries.SABOTEURS,
    *in_readers.SABOTEURS,
    *in_starts.SABOTEURS,
    *in_ledger.SABOTEURS,
    *in_limits.SABOTEURS,
    *in_queue.SABOTEURS,
    *in_scheduler.SABOTEURS,
    *in_turns.SABOTEURS,
    *in_rolling.SABOTEURS,
)
