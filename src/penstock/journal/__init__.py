"""Durable logs of items. May import the top files and `wire`; `collect` alone also `aio`."""

from __future__ import annotations

from .index import Gap
from .journal import Journal
from .reader import JournalReader
from .retention import trim
from .writer import JournalWriter

__all__ = ["Gap", "Journal", "JournalReader", "JournalWriter", "trim"]
