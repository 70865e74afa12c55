"""Statuses of the feeds of a file from their journals on disk, without the process that collects them."""

from __future__ import annotations

import os
import time
from typing import Final

from ..errors import JournalError
from ..journal.layout import DURABLE, log_folder
from .config import FeedConfig
from .file import FeedsFile
from .status import FeedState, FeedStatus
from .survey import end_of

__all__ = ["statuses"]

LIVE_SECONDS: Final = 45.0
"""A log whose mark is younger is collected: collectors renew it every 20 seconds, also without items."""


def statuses(file: FeedsFile) -> list[FeedStatus]:
    """Return a status of each feed: its position, and whether it was written to lately. Counters are 0."""
    found = [_status(name, config) for name, config in file.feeds.items()]
    return found + [FeedStatus.refused(name, problem) for name, problem in file.problems.items()]


def _status(name: str, config: FeedConfig) -> FeedStatus:
    source = config.source_of(name)
    status = FeedStatus(
        name=name,
        url=config.url,
        route=config.route,
        journal=config.journal,
        source=source,
        state=FeedState.STOPPED,
        budget=int(config.budget),
    )
    try:
        status.position = end_of(config.journal, source)
        status.state = _state(config.journal, source)
    except JournalError as error:
        status.problem = str(error)
    return status


def _state(journal: str, source: str) -> FeedState:
    try:
        age = time.time() - os.stat(log_folder(journal, source) / DURABLE).st_mtime
    except OSError:
        return FeedState.STOPPED
    return FeedState.LIVE if age < LIVE_SECONDS else FeedState.STOPPED
