"""Seals the logs of feeds in the background, as the table `storage` of each feed says."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..archive.options import SealOptions
from ..archive.sealer import Sealer

if TYPE_CHECKING:
    from .config import FeedConfig, Storage

__all__ = ["STOP_SECONDS", "Sealing", "seal_options", "seal_seconds"]

logger = logging.getLogger("penstock.feeds")

INTERVAL: Final = 5.0
"""Seconds between two looks at the logs."""
STOP_SECONDS: Final = 30.0
"""How long the upload of a last file may take at the end; it is repeated by the next process otherwise."""


def seal_options(storage: Storage) -> SealOptions:
    """Return how a feed's log is sealed."""
    given = {
        "store": storage.store,
        "target_bytes": storage.seal_bytes,
        "max_age": storage.seal_age,
        "keep": storage.keep,
        "keep_bytes": storage.keep_bytes,
    }
    return SealOptions(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]  # Any values


def seal_seconds(config: FeedConfig) -> float:
    """Return the age at which a feed's segment is complete, so that it can be sealed, in seconds."""
    return float("inf") if config.storage is None else seal_options(config.storage).max_age


@dataclass(slots=True)
class _Thread:
    """A thread that seals the logs of one journal with equal options."""

    sealer: Sealer
    sources: set[str] = field(default_factory=set)
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class Sealing:
    """The threads that seal the logs of this process: one for each journal and each way to seal it."""

    def __init__(self) -> None:
        self._threads: dict[tuple[str, SealOptions], _Thread] = {}

    def apply(self, feeds: Iterable[tuple[str, FeedConfig]]) -> None:
        """Seal the logs of these feeds from now on, and no others.

        Args:
            feeds: The names of the logs, and the configurations.

        """
        wanted: dict[tuple[str, SealOptions], set[str]] = {}
        for source, config in feeds:
            if config.storage is not None:
                wanted.setdefault((config.journal, seal_options(config.storage)), set()).add(source)
        for key in self._threads.keys() - wanted.keys():
            self._threads.pop(key).stop.set()
        for key, sources in wanted.items():
            if key not in self._threads:
                self._threads[key] = _started(*key)
            self._threads[key].sources = sources

    def failures(self) -> dict[tuple[str, str], str]:
        """Return what prevents logs from being sealed, by journal and log."""
        threads = self._threads.items()
        return {
            (journal, source): why for (journal, _), each in threads for source, why in each.sealer.failures.items()
        }

    def stop(self) -> None:
        """End the threads after their current files. This blocks."""
        threads = list(self._threads.values())
        self._threads.clear()
        for each in threads:
            each.stop.set()
        for each in threads:
            assert each.thread is not None
            each.thread.join(STOP_SECONDS)


def _started(journal: str, options: SealOptions) -> _Thread:
    made: _Thread
    made = _Thread(Sealer(journal, options, sources=lambda: set(made.sources)))
    made.thread = threading.Thread(
        target=made.sealer.run, args=(made.stop, INTERVAL), name="penstock-sealer", daemon=True
    )
    made.thread.start()
    return made
