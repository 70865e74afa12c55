"""Prepares a process that collects many feeds: its logs, its limits, its threads and its traces."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from typing import Final

from ..observe.logs import JsonLines, TextLines
from .feed import CURRENT_FEED
from .request import OnBatch

__all__ = ["FILES_PER_FEED", "THREADS", "check_files", "leave", "on_batch", "prepare", "use_threads"]

logger = logging.getLogger("weirpool.feeds")

FILES_PER_FEED: Final = 6
"""Open files of a feed at most: its connection, its lock, its mark, a segment and the next one, and a cursor."""
THREADS: Final = 32
"""Threads that wait for the disk: more do not make it faster."""

HUNG: Final = 1
"""The exit code if a disk does not answer at the end."""


class _FeedNames(logging.Filter):
    """Names the feed in each record of a connection or a collector, which do not know feeds."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the feed to the message, and as a field of JSON."""
        name = CURRENT_FEED.get()
        if name and not hasattr(record, "feed"):
            record.feed = name
            record.msg, record.args = f"{name}: {record.getMessage()}", None
        return True


def prepare(log: str) -> None:
    """Set up logs in the form "json" or "text", and allow as many open files as the system permits."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log == "json" else TextLines("weirpool: %(message)s"))
    handler.addFilter(_FeedNames())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems allow less than they say.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def check_files(feeds: int) -> None:
    """Warn if so many feeds may need more open files than this process may have."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and feeds * FILES_PER_FEED > limit:
        logger.warning(
            "%d feeds may need %d open files, and the limit is %d; raise it (ulimit -n, or LimitNOFILE of systemd), or "
            "share the feeds among more --workers", feeds, feeds * FILES_PER_FEED, limit,
        )  # fmt: skip


def leave(late: list[str]) -> None:
    """End the process at once if something could not be stopped, because a disk does not answer.

    The interpreter would wait for the thread that waits for the disk. Nothing is lost: what is not on disk was not
    acknowledged.
    """
    if late:
        os._exit(HUNG)


def use_threads() -> None:
    """Give the running loop a bounded number of threads for work that waits for the disk."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, thread_name_prefix="weirpool"))


def on_batch() -> Callable[[str], OnBatch | None]:
    """Return what makes the collector's hook for a feed: spans of batches, if a tracer is set up in this process."""
    if find_spec("opentelemetry") is None:
        return lambda name: None
    from ..observe.item_traces import batch_tracing, tracer_is_set_up

    return (lambda name: batch_tracing(name)) if tracer_is_set_up() else (lambda name: None)
