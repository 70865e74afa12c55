"""The log of one session: a file of records, and its recovery after a crash.

A file is a magic number and records. A record is its length, the CRC-32 of its bytes, the CRC-32 of these two
numbers (little-endian, 4 bytes each), and its bytes. The second checksum distinguishes a damaged length, after which
the content is unknown, from an incomplete record.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from zlib import crc32

from ..access.private import open_private
from ..errors import SessionStoreError

__all__ = ["MAGIC", "TEMPORARY", "Log", "frame", "split", "store_errors", "sync_folder"]

MAGIC: Final = b"weirpool session 1\n"
TEMPORARY: Final = ".tmp"
"""The suffix of a file before its first record is durable."""

_NUMBERS = struct.Struct("<II")
_HEAD_BYTES = _NUMBERS.size + 4


@contextmanager
def store_errors(path: Path, action: str) -> Iterator[None]:
    """Turn an `OSError` inside the block into a SessionStoreError.

    `action` is what failed at `path`, as in "be read".
    """
    try:
        yield
    except OSError as error:
        raise SessionStoreError(
            f"{path}: cannot {action} ({error.strerror or error}); check the folder, its permissions and the disk"
        ) from error


def frame(record: bytes) -> bytes:
    """Return `record` as it is stored in a file."""
    numbers = _NUMBERS.pack(len(record), crc32(record))
    return numbers + crc32(numbers).to_bytes(4, "little") + record


def split(data: bytes) -> tuple[list[bytes], int]:
    """Return the records in the bytes of a file, and the end of the last one: an incomplete record may follow.

    Raises ValueError if there is damage before the end.
    """
    if not data.startswith(MAGIC):
        raise ValueError("not the log of a session: its first bytes are different")
    records: list[bytes] = []
    at = len(MAGIC)
    while len(data) - at >= _HEAD_BYTES:
        numbers = data[at : at + _NUMBERS.size]
        length, checksum = _NUMBERS.unpack(numbers)
        if int.from_bytes(data[at + _NUMBERS.size : at + _HEAD_BYTES], "little") != crc32(numbers):
            if not any(data[at:]):
                # The file had already grown when the power failed, but its bytes were not written.
                break
            raise ValueError(f"byte {at}: the checksum of a length does not match")
        end = at + _HEAD_BYTES + length
        record = data[at + _HEAD_BYTES : end]
        if end > len(data) or (end == len(data) and crc32(record) != checksum):
            break
        if crc32(record) != checksum:
            raise ValueError(f"byte {at}: the checksum of a record does not match")
        records.append(record)
        at = end
    return records, at


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Log:
    """A :class:`weirpool.session.SessionLog` in a file; `closed` is called when it is closed or removed.

    The file is open only while it is read or written: sessions that wait for their clients take up no descriptors.
    """

    def __init__(self, path: Path, closed: Callable[[], None]) -> None:
        self.path = path
        self.size = 0
        self._closed = closed

    def read(self) -> list[bytes]:
        """Read the existing file, cut off an incomplete record, and return the records.

        The last record may have been written but not synced, if the previous server was killed in between. It is
        durable after the next `append` or `rewrite`.

        Raises:
            SessionStoreError: The file cannot be read, or is damaged.

        """
        with store_errors(self.path, "be read"), open(self._open(os.O_RDWR), "rb") as file:
            records, self.size = self._split(file.read())
            os.ftruncate(file.fileno(), self.size)
        return records

    def _open(self, flags: int) -> int:
        return os.open(self.path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)

    def _split(self, data: bytes) -> tuple[list[bytes], int]:
        try:
            return split(data)
        except ValueError as error:
            raise SessionStoreError(f"{self.path}: {error}; the session is lost, delete the file") from error

    def append(self, record: bytes) -> None:
        """Add a record, which is durable on return. See :class:`weirpool.session.SessionLog`."""
        data = frame(record)
        with store_errors(self.path, "be written"):
            fd = self._open(os.O_WRONLY)
            try:
                _write(fd, data, self.size)
                os.fdatasync(fd)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(fd, self.size)
                raise
            finally:
                os.close(fd)
        self.size += len(data)

    def rewrite(self, record: bytes) -> None:
        """Replace all records with `record`. See :class:`weirpool.session.SessionLog`."""
        data = MAGIC + frame(record)
        temporary = self.path.with_name(self.path.name + TEMPORARY)
        with store_errors(self.path, "be rewritten"):
            # THREATS 28: only the owner may read the clients' data.
            temporary.unlink(missing_ok=True)
            fd = open_private(temporary, os.O_RDWR | os.O_EXCL)
            try:
                _write(fd, data, 0)
                os.fsync(fd)
                os.rename(temporary, self.path)
                sync_folder(self.path.parent)
            except OSError:
                with suppress(OSError):
                    temporary.unlink()
                raise
            finally:
                os.close(fd)
        self.size = len(data)

    def remove(self) -> None:
        """Delete the log."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the log and keep its file. May be called twice."""
        self._closed()


def _write(fd: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view = view[written:]
        offset += written
