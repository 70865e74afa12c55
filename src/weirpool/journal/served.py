"""Journals that collectors serve. They are reached by a package above this one, which is imported for them alone."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from .ports import Coordinator, LogReader

__all__ = ["ServedJournal", "served_coordinator", "served_journal"]

PACKAGE = "..serving"


class ServedJournal(Protocol):
    """What `Journal` needs of a journal behind a collector."""

    def sources(self) -> list[str]:
        """Return the names of the logs, in order."""

    def is_awaited(self, source: str) -> bool:
        """Return True if a log has a collector that has received nothing yet."""

    def reader(self, source: str) -> LogReader:
        """Return a reader of a log."""


def served_journal(url: str) -> ServedJournal:
    """Return the journal that the collectors at these URLs serve."""
    return cast(ServedJournal, import_module(f"{PACKAGE}.remote", __package__).RemoteJournal.at(url))


def served_coordinator(url: str) -> Coordinator:
    """Return where readers of such a journal record their positions."""
    return cast(Coordinator, import_module(f"{PACKAGE}.coordinator", __package__).RemoteCoordinator(url))
