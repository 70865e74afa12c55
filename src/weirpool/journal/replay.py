"""Completes a log from redo files after a power cut: the batches in them may be missing in the segments, or torn."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..errors import JournalCorrupt, JournalLocked
from .disk import disk_errors, read_file, sync_folder, write_at
from .layout import LOCK, UNSYNCED, segment_name, source_of
from .lock import Lock
from .records import Record, frames
from .records import decode as records

__all__ = ["FILES", "MAX_RELIANCE_BYTES", "REDO", "Reliance", "boot", "decode", "reliance", "remove", "replay", "sweep"]

REDO = "_redo"
"""The folder of redo files in a journal: one folder a process, with a name that no other one has."""
FILES = ("0.redo", "1.redo")
"""They are used in turns, each from its start."""
_RELIANCE = re.compile(rb"([0-9a-f]{32}) (\d{1,19}) ([0-9a-f-]{0,36})\n")
MAX_RELIANCE_BYTES = 128
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Reliance(NamedTuple):
    """What the segments of a log rely on to be complete after a power cut."""

    redo: str
    """The name of the redo files."""
    number: int
    """The first frame in them that counts: earlier ones may have batches that were canceled."""
    boot: str = ""
    """Names the time since the writer's machine was started; empty if the system has no such name."""

    def encode(self) -> bytes:
        """Return the content of the file `_unsynced`."""
        return b"%s %d %s\n" % (self.redo.encode(), self.number, self.boot.encode())

    @property
    def broken_off(self) -> bool:
        """True if the machine has stopped since then, or is another one: segments may be incomplete."""
        return self.boot != boot()


@cache
def boot() -> str:
    """Return the name of the time since this machine was started."""
    data = read_file(_BOOT, MAX_RELIANCE_BYTES)
    return "" if data is None else data.decode().strip()


def reliance(folder: Path) -> Reliance | None:
    """Return what a log's segments rely on; None if they are complete."""
    path = folder / UNSYNCED
    data = read_file(path, MAX_RELIANCE_BYTES)
    return None if data is None else decode(data, str(path))


def decode(data: bytes, name: str) -> Reliance:
    """Return the content of the file `name`; raise `JournalCorrupt` if it is damaged."""
    match = _RELIANCE.fullmatch(data)
    if match is None:
        raise JournalCorrupt(
            f"{name}: does not name the redo files of this log; restore it from a copy, or see what "
            "`weirpool journal repair` can do"
        )
    return Reliance(match[1].decode(), int(match[2]), match[3].decode())


def replay(folder: Path, uuid: str) -> None:
    """Write the batches in redo files to the segments of a log again, and make them durable there.

    The caller holds the log's lock. It does nothing if the log was closed, and has no effect after a process was
    killed, because then the segments are complete.
    """
    known = reliance(folder)
    if known is None:
        return
    files: dict[int, int] = {}
    try:
        with disk_errors(folder, "be completed"):
            for number, record in _records(folder.parent / REDO / known.redo):
                if record.uuid == uuid and number >= known.number:
                    _rewrite(folder, record, files)
            for fd in files.values():
                os.fsync(fd)
            (folder / UNSYNCED).unlink()
            sync_folder(folder)
    finally:
        for fd in files.values():
            os.close(fd)


def _rewrite(folder: Path, record: Record, files: dict[int, int]) -> None:
    """Write a record to its segment, unless that was trimmed, or is a copy that ends before."""
    fd = files.get(record.segment, -1)
    if fd < 0:
        try:
            fd = os.open(folder / segment_name(record.segment), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return
        files[record.segment] = fd
    if record.offset <= os.fstat(fd).st_size:
        write_at(fd, record.chunks, record.offset)


def _records(redo: Path) -> Iterator[tuple[int, Record]]:
    """Yield the records in redo files, with the numbers of their frames, in the order in which they became durable."""
    found = []
    for name in FILES:
        with suppress(FileNotFoundError):
            found.append(list(frames(memoryview((redo / name).read_bytes()))))
    for number, content in sorted((frame for file in found for frame in file), key=lambda frame: frame[0]):
        for record in records(content):
            yield number, record


def sweep(journal: Path) -> None:
    """Remove redo files whose process has ended and that no log relies on."""
    with disk_errors(journal / REDO, "be cleaned up"):
        left = {path.name for path in (journal / REDO).iterdir()}
        if not left:
            return
        known = (reliance(path) for path in journal.iterdir() if source_of(path.name) is not None)
        for name in left - {each.redo for each in known if each is not None}:
            with suppress(JournalLocked), Lock(journal / REDO / name / LOCK):
                # A log that relied on it since then would have a living process.
                remove(journal / REDO / name)


def remove(redo: Path) -> None:
    """Remove a folder of redo files that no log relies on."""
    for path in list(redo.iterdir()):
        path.unlink(missing_ok=True)
    redo.rmdir()
