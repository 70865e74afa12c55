"""All known mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from . import in_collector, in_journal, in_queries, in_rolling, in_sessions
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

SABOTEURS: Final[Sequence[Saboteur]] = (
    *in_collector.SABOTEURS,
    *in_sessions.SABOTEURS,
    *in_journal.SABOTEURS,
    *in_queries.SABOTEURS,
    *in_rolling.SABOTEURS,
)
