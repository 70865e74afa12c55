"""Seals the logs of feeds in the background, as the table `storage` of each feed says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..archive.options import SealOptions
from ..archive.sealer import INTERVAL, Sealer, SealingThread

if TYPE_CHECKING:
    from .config import FeedConfig, Storage

__all__ = ["Sealing", "seal_options", "seal_seconds"]


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


class _Seals:
    """What seals the logs of one journal with equal options."""

    def __init__(self, journal: str, options: SealOptions, sources: set[str]) -> None:
        self.sources = sources
        self.sealer = Sealer(journal, options, sources=lambda: set(self.sources))
        self.thread = SealingThread(self.sealer, INTERVAL)


class Sealing:
    """The threads that seal the logs of this process: one for each journal and each way to seal it."""

    def __init__(self) -> None:
        self._threads: dict[tuple[str, SealOptions], _Seals] = {}

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
            self._threads.pop(key).thread.stop()
        for key, sources in wanted.items():
            if key in self._threads:
                self._threads[key].sources = sources
            else:
                self._threads[key] = _Seals(*key, sources)

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
            each.thread.stop()
        for each in threads:
            each.thread.join()
