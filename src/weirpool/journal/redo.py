"""Redo files: one synced write makes small batches of many logs durable.

Two files are used in turns. When one is full, the segments of the batches in the other one are synced, if they have not
been in the meantime, and that file is used again from its start: overwriting is cheaper to sync than growing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

from ..errors import JournalError
from .disk import disk_errors, make_folder, open_private, sync_folder, write_at
from .durability import StagedAppend, StagedLog
from .layout import LOCK
from .lock import Lock
from .records import FrameBuffer
from .replay import FILES, REDO, Reliance, boot, remove, sweep

__all__ = ["Redo"]

DEFAULT_FILE_BYTES: Final = 32 * 1024 * 1024
"""The size at which the other file is used: some seconds of many small feeds."""
SYNCED_PER_WRITE: Final = 4
"""Segments that each write syncs in advance, so that none has to wait for all of them."""


@dataclass(eq=False, slots=True)
class _File:
    fd: int
    end: int = 0
    unsynced: dict[StagedLog, None] = field(default_factory=dict)
    """The logs with batches in it whose segments were not synced since."""


class Redo:
    """The redo files of one process in one journal. They are made when they are first needed.

    Args:
        journal: The journal's folder.
        file_bytes: The size of a file from which the other one is used.

    """

    def __init__(self, journal: Path, file_bytes: int = DEFAULT_FILE_BYTES) -> None:
        self._journal = journal
        self._file_bytes = file_bytes
        self._name = ""
        self._lock: Lock | None = None
        self._files: list[_File] = []
        self._number = 0
        self._buffer = FrameBuffer()

    @property
    def _folder(self) -> Path:
        return self._journal / REDO / self._name

    def write(self, appends: Sequence[StagedAppend]) -> None:
        """Make appends durable: in one synced write. See `Durability.write`."""
        try:
            with disk_errors(self._folder, "be written to"):
                if not self._files:
                    self._create()
                frame = self._buffer.encode(self._number, [append.record for append in appends])
                file = self._room(len(frame))
                reliance = Reliance(self._name, self._number, boot())
                for append in appends:
                    append.log.rely_on(reliance)
                end = write_at(file.fd, [frame], file.end)
                os.fdatasync(file.fd)
        except BaseException:
            # What is on the disk now is unknown: these files are not used again.
            with suppress(JournalError):
                self.close()
            raise
        file.end = end
        self._number += 1
        file.unsynced.update((append.log, None) for append in appends)
        try:
            self._sync_some(self._files[1])
        except JournalError:
            # The batches of a log whose disk fails must stay in these files until it is opened again.
            self.close()

    def close(self) -> None:
        """Settle all logs, and remove the files if no log relies on them. May be called twice."""
        files, self._files = self._files, []
        lock, self._lock = self._lock, None
        left = False
        for log in dict.fromkeys(log for file in files for log in file.unsynced):
            try:
                log.settle()
            except JournalError:
                # Whoever opens it next completes it from the files.
                left = True
        for file in files:
            os.close(file.fd)
        if lock is not None:
            with lock, disk_errors(self._folder, "be removed"):
                if not left:
                    remove(self._folder)

    def _create(self) -> None:
        folder = self._journal / REDO
        make_folder(folder)
        sweep(self._journal)
        self._name = uuid4().hex
        make_folder(self._folder)
        self._lock = Lock(self._folder / LOCK)
        self._number = 0
        for name in FILES:
            self._files.append(_File(open_private(self._folder / name, os.O_RDWR | os.O_EXCL)))
        sync_folder(self._folder)

    def _room(self, size: int) -> _File:
        """Return the file to write to; the other one is used again when this one is full."""
        current, other = self._files
        if not current.end or current.end + size <= self._file_bytes:
            return current
        while other.unsynced:
            self._sync_some(other)
        other.end = 0
        self._files.reverse()
        return other

    @staticmethod
    def _sync_some(file: _File) -> None:
        for log in list(file.unsynced)[:SYNCED_PER_WRITE]:
            log.sync()
            del file.unsynced[log]
