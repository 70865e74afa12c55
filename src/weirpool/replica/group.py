"""A group that this process owns, from its take-over to its end."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import JournalError, JournalLocked
from ..journal import asks
from ..journal.journal import Journal
from ..journal.layout import LOCK, log_folder, segment_name
from ..journal.lock import Lock
from ..journal.sealed import safe_position
from ..journal.storage import LogFolder
from ..journal.writer import JournalWriter
from ..objects import open_store
from ..texts import concealed
from .bundle import Part
from .bundler import INTERVAL, Bundler, State
from .logs import Logs
from .ownership import take
from .readers import ReadersThread
from .recall import recall
from .sequence import Sequence
from .vault import Vault
from .watch import Watch

__all__ = ["HEARTBEATS", "Group", "Membership"]

logger = logging.getLogger("weirpool.replica")

HEARTBEATS: Final = 4
"""Bundles that an owner without rows writes within the patience of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What the collectors of a group agree on.

    Args:
        name: The name of the group.
        store: The URI of its store.
        key: Encrypts its secrets; see `weirpool.replica.vault.new_key`.
        journal: The journal's folder on this machine, for this collector alone.
        patience: Seconds without a sign of the owner after which another collector takes the group over.
        interval: Seconds between bundles.

    """

    __repr__ = concealed

    name: str
    store: str
    key: str
    journal: Path
    patience: float = 10.0
    interval: float = INTERVAL

    def vault(self) -> Vault:
        """Return what encrypts the group's secrets; `LocalError` if the key is invalid."""
        return Vault(self.key, self.name)

    def sequence(self) -> Sequence:
        """Return the group's bundles; `StoreError` if the store cannot fence collectors."""
        return Sequence(open_store(self.store), self.name)

    def watch(self) -> Watch:
        """Return what tells whether the group needs another owner."""
        return Watch(self.sequence(), self.patience)


class Group:
    """A group that this process has taken over. Close it after the last log; all methods block.

    Args:
        member: The group.
        lost: Called once, in another thread, when nothing can be written any more: mostly because another collector has
            taken the group over.

    Raises:
        Superseded: Another collector was faster, or the owner is alive.
        JournalError: A log cannot be restored, or the key is another one. The group is given up again.

    Attributes:
        logs: Keeps the logs.

    """

    def __init__(self, member: Membership, lost: Callable[[JournalError], object] = lambda error: None) -> None:
        self._journal = member.journal
        # Up to where each log is sealed; and of those that are sealed to their end, the log's id and its end.
        self._sealed: dict[str, int] = {}
        self._ended: dict[str, tuple[str, int]] = {}
        vault, sequence = member.vault(), member.sequence()
        _check_key(sequence, vault)
        owned = take(sequence, key=vault.proof())
        parts, numbers = list(owned.logs.values()), range(owned.floor, owned.number)
        self.epoch = owned.epoch
        # From here on the owner is seen to be alive, however long the rest takes.
        self._bundler = Bundler(owned, interval=member.interval, heartbeat=member.patience / HEARTBEATS, lost=lost)
        try:
            asks.prepare(member.journal)
            recall(sequence, numbers, parts, member.journal, vault)
            self.logs = Logs(self._bundler, vault, {part.source: part for part in parts})
            for part in parts:
                if part.gap:
                    self._record_gap(part)
            self._readers = ReadersThread(member.journal, self.logs.record)
        except BaseException:
            self._bundler.close()
            raise

    def _record_gap(self, part: Part) -> None:
        """Record the gap at the end of a log, if its record is neither in a bundle any more nor in a manifest."""
        if not Journal(self._journal).reader(part.source).gaps(part.end, part.end + 1):
            with JournalWriter.open(self._journal, part.source, replica=self.logs) as writer:
                writer.append_gap(part.gap, part.state)

    @property
    def trouble(self) -> str:
        """Why the store does not answer; empty if it does."""
        return self._bundler.trouble

    @property
    def is_lost(self) -> bool:
        """True if another collector has taken the group over."""
        return self._bundler.state is State.LOST

    def tend(self, seal_seconds: float, now: Callable[[], float] = time.time) -> None:
        """Allow bundles whose rows are sealed to be deleted, and complete old segments of logs that nobody writes.

        Call it every few seconds, beside the sealer. It warns if the store hangs.
        """
        self._bundler.check()
        for part in self.logs.parts():
            if self._ended.get(part.source) == (part.uuid, part.end):
                # Most logs of a large group are as they were; each look at one reads a file.
                continue
            folder = log_folder(self._journal, part.source)
            try:
                sealed = self._sealed[part.source] = safe_position(folder)
                if sealed == part.end:
                    self._ended[part.source] = part.uuid, part.end
                elif part.uuid and part.end > sealed:
                    self._complete(folder, part, seal_seconds, now())
            except JournalLocked:
                # A feed writes it, and completes its segments itself.
                continue
            except (JournalError, OSError) as error:
                # One log must not keep the others from being tended.
                logger.warning("%s: its last segment cannot be completed: %s", folder, error)
        self._bundler.release(self._sealed)

    def _complete(self, folder: Path, part: Part, seal_seconds: float, now: float) -> None:
        """Start another segment in a log whose last one has rows, and is old."""
        segments = LogFolder.local(folder).segments()
        if not segments or segments[-1][0] == part.end:
            return
        if now - os.stat(folder / segment_name(segments[-1][0])).st_mtime < seal_seconds:
            return
        lock = Lock(folder / LOCK)
        with JournalWriter.open(
            self._journal, part.source, segment_seconds=0.0, replica=self.logs, lock=lock
        ) as writer:
            writer.renew()

    def close(self) -> None:
        """Write what was submitted, and give the group up, so that another collector need not wait."""
        self._readers.close()
        self._bundler.close()


def _check_key(sequence: Sequence, vault: Vault) -> None:
    """Refuse to take over a group whose secrets cannot be decrypted."""
    numbers = sequence.numbers()
    found = sequence.header(numbers[-1]) if numbers else None
    if found is not None and found[0].key:
        vault.check(found[0].key)
