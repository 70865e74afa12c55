"""The segment that a writer appends to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .disk import open_private, sync_folder, write_at

__all__ = ["TEMPORARY", "SegmentFile"]

TEMPORARY = ".tmp"
"""The suffix of a segment's file before its first batch is durable."""


class SegmentFile:
    """A file that grows by complete batches: a partial write is cut off.

    Its methods raise `OSError`, which the writer converts.

    Attributes:
        path: The file.
        size: The bytes of its complete batches.
        unsynced: Some of them are not durable in this file, but in a redo file.
        failed: A sync failed while there were such bytes. The system may have dropped them; the redo file has them.

    """

    def __init__(self, path: Path, fd: int, size: int, fsync: bool) -> None:
        self.path = path
        self.size = size
        self.unsynced = False
        self.failed = False
        self._fd = fd
        self._fsync = fsync
        self._torn = False

    @classmethod
    def create(cls, path: Path, chunks: Sequence[bytes | memoryview], *, fsync: bool) -> SegmentFile:
        """Create a segment with its first bytes. It gets its name when they are durable, so no segment is empty."""
        temporary = path.with_name(path.name + TEMPORARY)
        temporary.unlink(missing_ok=True)
        fd = open_private(temporary, os.O_WRONLY | os.O_EXCL)
        try:
            size = write_at(fd, chunks, 0)
            if fsync:
                os.fsync(fd)
            os.rename(temporary, path)
            if fsync:
                sync_folder(path.parent)
        except BaseException:
            os.close(fd)
            for name in (temporary, path):
                with suppress(OSError):
                    name.unlink()
            raise
        return cls(path, fd, size, fsync)

    @classmethod
    def reopen(cls, path: Path, size: int, *, fsync: bool) -> SegmentFile:
        """Open an existing segment, cut to its first `size` bytes."""
        fd = os.open(path, os.O_WRONLY)
        segment = cls(path, fd, size, fsync)
        try:
            os.ftruncate(fd, size)
            # Its last batch may be written but not synced, if the previous writer was killed in between.
            segment.sync()
        except BaseException:
            os.close(fd)
            raise
        return segment

    def append(self, chunks: Sequence[bytes | memoryview], *, sync: bool = True) -> None:
        """Append `chunks`, durably unless `sync` is false. On an error, none of their bytes remain."""
        if self._torn:
            os.ftruncate(self._fd, self.size)
            self._torn = False
        try:
            end = write_at(self._fd, chunks, self.size)
            if sync:
                self.sync()
        except BaseException:
            self.cut(self.size)
            raise
        self.size = end
        self.unsynced = self.unsynced or not sync

    def sync(self) -> None:
        """Make all bytes durable, if enabled."""
        if self._fsync:
            try:
                os.fsync(self._fd)
            except BaseException:
                self.failed = self.failed or self.unsynced
                raise
        self.unsynced = False

    def cut(self, size: int) -> None:
        """Cut off everything after the first `size` bytes; if even that fails, the next `append` does it."""
        self.size = size
        self._torn = True
        with suppress(OSError):
            os.ftruncate(self._fd, size)
            self._torn = False

    def discard(self) -> None:
        """Close and remove the file."""
        self.close()
        with suppress(OSError):
            self.path.unlink()

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
