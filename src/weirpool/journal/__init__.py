"""Durable logs of items. May import the top files, `wire`, `store` and `access.private`; only `collect` also `aio`.

A journal is a folder of logs, one per collector. A log is a sequence of immutable segments of Arrow record batches. Its
rows are numbered from 0 and never renumbered: readers request and commit these positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .format import ITEMS, SCHEMA
    from .gaps import Gap
    from .identity import Identity, Request
    from .journal import Journal
    from .layout import Extent
    from .ports import LogReader
    from .reader import JournalReader
    from .repair import Repair
    from .retention import DEFAULT_READER, DEFAULT_RETAIN_BYTES
    from .verify import Report
    from .writer import DEFAULT_BUDGET_BYTES, DEFAULT_SEGMENT_BYTES, JournalWriter

__all__ = [
    "DEFAULT_BUDGET_BYTES",
    "DEFAULT_READER",
    "DEFAULT_RETAIN_BYTES",
    "DEFAULT_SEGMENT_BYTES",
    "ITEMS",
    "SCHEMA",
    "Extent",
    "Gap",
    "Identity",
    "Journal",
    "JournalReader",
    "JournalWriter",
    "LogReader",
    "Repair",
    "Report",
    "Request",
]

# Imported on first use: Spark's workers only read, and each of their processes imports this package.
__getattr__ = lazily(
    __name__,
    {
        "DEFAULT_BUDGET_BYTES": "writer",
        "DEFAULT_READER": "retention",
        "DEFAULT_RETAIN_BYTES": "retention",
        "DEFAULT_SEGMENT_BYTES": "writer",
        "ITEMS": "format",
        "SCHEMA": "format",
        "Extent": "layout",
        "Gap": "gaps",
        "Identity": "identity",
        "Journal": "journal",
        "JournalReader": "reader",
        "JournalWriter": "writer",
        "LogReader": "ports",
        "Repair": "repair",
        "Report": "verify",
        "Request": "identity",
    },
)
