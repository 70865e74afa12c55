"""The durable mark: the end of a log on disk, and its last batch. Also the position up to which it was trimmed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import xxhash

from ..errors import JournalCorrupt
from .disk import open_private, replace_file, write_at

__all__ = [
    "MARK_BYTES",
    "MAX_MARK_FILE_BYTES",
    "MAX_TRIMMED_BYTES",
    "Mark",
    "MarkFile",
    "decode_trimmed",
    "encode_trimmed",
    "newest",
]

MARK_BYTES = 166
"""The size of a slot."""
_SLOTS = (0, 4096)
"""The offsets of the two slots: a write that is torn at a block of the disk damages only one of them."""
MAX_MARK_FILE_BYTES = _SLOTS[1] + MARK_BYTES
_CHECKSUM_BYTES = 16
_SLOT = re.compile(rb"(\d{20}) (\d{20}) (\d{20}) (\d{20}) ([0-9a-f]{64}) ([0-9a-f]{16})\n")
MAX_TRIMMED_BYTES = 64
"""The size of the file that records trimming: a position has at most 19 digits, its checksum 16."""
_TRIMMED = re.compile(rb"(\d{1,19}) ([0-9a-f]{16})\n")


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a log is durable: everything before a segment, and that segment up to `offset` bytes.

    Readers do not read past it: a batch there may be incomplete, or may still fail to be written.
    """

    segment: int
    """The position of the segment's first row."""
    offset: int
    """Bytes of the segment."""
    end: int
    """The position after the last row."""
    head: str
    """The digest of the last batch; before the first one, the log's genesis."""

    def encode(self, number: int) -> bytes:
        """Return the mark as written to a slot, under a number greater than that of the previous mark."""
        text = b"%020d %020d %020d %020d %s " % (number, self.segment, self.offset, self.end, self.head.encode())
        return text + _checksum(text) + b"\n"


def newest(data: bytes) -> tuple[int, Mark] | None:
    """Return number and mark of the newest slot in a mark's file, or None if neither slot is valid."""
    # Numbers have the same length, so the newer slot is the greater text.
    slots = sorted((data[start : start + MARK_BYTES] for start in _SLOTS), reverse=True)
    return _decode(slots[0]) or _decode(slots[1])


def _decode(slot: bytes) -> tuple[int, Mark] | None:
    match = _SLOT.fullmatch(slot)
    if match is None or _checksum(slot[: -_CHECKSUM_BYTES - 1]) != match[6]:
        return None
    number, segment, offset, end = (int(match[group]) for group in range(1, 5))
    if max(segment, offset, end) > 1 << 62 or segment > end:
        return None
    return number, Mark(segment, offset, end, match[5].decode())


class MarkFile:
    """The file of a log's mark, for its writer. Its methods raise `OSError`.

    It is created with a mark in it, if necessary, so it is never empty. With `fsync` the mark is durable on return.
    """

    def __init__(self, path: Path, mark: Mark, *, fsync: bool) -> None:
        self._fd = -1
        self._fsync = fsync
        self._number = 1
        try:
            before = newest(path.read_bytes())
        except FileNotFoundError:
            before = None
        if before is None:
            replace_file(path, mark.encode(self._number), fsync=fsync)
        else:
            self._number = before[0]
        self._fd = open_private(path, os.O_WRONLY)
        try:
            if before is not None and before[1] != mark:
                self.write(mark)
            self.sync()
        except BaseException:
            os.close(self._fd)
            raise

    def write(self, mark: Mark) -> None:
        """Publish another mark to readers, in one write over the older of the two slots; it is not synced."""
        number = self._number + 1
        write_at(self._fd, [mark.encode(number)], _SLOTS[(number + 1) % 2])
        self._number = number

    def sync(self) -> None:
        """Sync the mark to disk, if enabled."""
        if self._fsync:
            os.fsync(self._fd)

    def close(self) -> None:
        """Sync and close the file. May be called twice."""
        if self._fd >= 0:
            try:
                self.sync()
            finally:
                os.close(self._fd)
                self._fd = -1


def encode_trimmed(position: int, uuid: str) -> bytes:
    """Return the position below which the rows of the log with this UUID were trimmed, as its file has it."""
    return b"%d %s\n" % (position, _checksum(b"%s %d" % (uuid.encode(), position)))


def decode_trimmed(data: bytes, uuid: str, name: str) -> int:
    """Return the position in the file `name`: missing rows below it are not damage.

    It raises `JournalCorrupt` if that differs from what was written, or belongs to another log.
    """
    match = _TRIMMED.fullmatch(data)
    if match is None or _checksum(b"%s %s" % (uuid.encode(), match[1])) != match[2]:
        raise JournalCorrupt(
            f"{name}: has no valid position below which this log was trimmed; restore it from a copy, or see what "
            "`weirpool journal repair` can do"
        )
    return int(match[1])


def _checksum(text: bytes) -> bytes:
    return xxhash.xxh3_64_hexdigest(text).encode()
