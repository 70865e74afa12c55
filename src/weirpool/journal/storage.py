"""The storage of a log for readers: a local folder, memory-mapped, or any file system of `pyarrow.fs`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.fs

from ..errors import JournalCorrupt, JournalError, JournalMissing
from .disk import NO_RESOURCES, converted
from .gaps import MAX_GAPS_BYTES, Gap
from .gaps import decode as decode_gaps
from .identity import MAX_IDENTITY_BYTES, Identity, decode, without_identity
from .layout import (
    DURABLE,
    GAPS,
    IDENTITY,
    LOCK,
    SEALED,
    SECRET,
    TRIMMED,
    UNSYNCED,
    is_served,
    segment_name,
    segment_position,
    source_folder,
    source_of,
)
from .mark import MAX_MARK_FILE_BYTES, MAX_TRIMMED_BYTES, Mark, decode_trimmed, newest
from .replay import MAX_RELIANCE_BYTES
from .replay import decode as decode_reliance

__all__ = ["LogFolder", "list_sources", "resolve"]

_MAPPED = pyarrow.fs.LocalFileSystem(use_mmap=True)
_MARK_TRIES = 3
"""A slot is written in one piece: reading both slots during writes is unlikely to happen twice."""


def resolve(path: str | os.PathLike[str]) -> tuple[pyarrow.fs.FileSystem, str]:
    """Return a file system, and the journal's path in it; `JournalError` if the URI cannot be reached.

    The path is a folder, or a URI that `pyarrow.fs.FileSystem.from_uri` supports: file, s3, gs, abfs, hdfs.
    """
    text = os.fspath(path)
    if "://" not in text:
        return _MAPPED, str(Path(text).absolute())
    with _errors(text):
        filesystem, inner = pyarrow.fs.FileSystem.from_uri(text)
    if isinstance(filesystem, pyarrow.fs.LocalFileSystem):
        filesystem = _MAPPED
    return filesystem, inner


def list_sources(filesystem: pyarrow.fs.FileSystem, path: str) -> list[str]:
    """Return the names of the logs in a journal, in order.

    It raises `JournalMissing` if there is no such folder, or it cannot be seen from this machine.
    """
    with _errors(path):
        infos = filesystem.get_file_info(pyarrow.fs.FileSelector(path, allow_not_found=True))
        if not infos and filesystem.get_file_info(path).type == pyarrow.fs.FileType.NotFound:
            raise JournalMissing(
                f"{path}: there is no such journal, or it cannot be seen from this machine; check the path "
                "and the mount, or run `weirpool collect` first"
            )
    names = (source_of(info.base_name) for info in infos if info.type == pyarrow.fs.FileType.Directory)
    return sorted(name for name in names if name is not None)


class LogFolder:
    """The folder of one log, for reading. Files that cannot be read raise `JournalError`.

    Attributes:
        is_near: False if it takes long to read all segments.

    """

    is_near = True

    def __init__(self, filesystem: pyarrow.fs.FileSystem, path: str) -> None:
        self.filesystem = filesystem
        self.path = path

    @classmethod
    def of(cls, path: str | os.PathLike[str], source: str) -> LogFolder:
        """Return the folder of one source in the journal at a path or URI, or behind a collector."""
        if is_served(path):
            # By a package above this one, which is imported for such journals alone.
            served: LogFolder = import_module("..serving.folder", __package__).ServedFolder(os.fspath(path), source)
            return served
        filesystem, inner = resolve(path)
        return cls(filesystem, f"{inner.rstrip('/')}/{source_folder(source)}")

    @classmethod
    def local(cls, folder: Path) -> LogFolder:
        """Return a log's folder on this machine."""
        return cls(_MAPPED, str(folder))

    def name(self, first: int) -> str:
        """Return the path of the segment that starts with this position."""
        return f"{self.path}/{segment_name(first)}"

    def segments(self) -> list[tuple[int, int]]:
        """Return first position and size in bytes of each segment, in order; none if there is no such log."""
        with _errors(self.path):
            infos = self.filesystem.get_file_info(pyarrow.fs.FileSelector(self.path, allow_not_found=True))
        positions = ((segment_position(info.base_name), info.size) for info in infos)
        return sorted((first, size) for first, size in positions if first is not None and size is not None)

    def content(self, first: int) -> pa.Buffer | None:
        """Return the current content of a segment, or None if it is gone. Locally, bytes are read only when used."""
        name = self.name(first)
        with _errors(name):
            try:
                with self.filesystem.open_input_file(name) as file:
                    return file.read_buffer()
            except FileNotFoundError:
                return None

    def identity(self) -> Identity | None:
        """Return the log's identity, or None if there is no such file.

        It raises `JournalCorrupt` if the file is damaged, or has another version of the format.
        """
        data = self.small(IDENTITY, MAX_IDENTITY_BYTES)
        return None if data is None else decode(data, f"{self.path}/{IDENTITY}")

    def is_awaited(self) -> bool:
        """Return True if a collector has opened a stream without any item yet: it has a secret, and no log.

        A lock is not sufficient: it may be left over from a deleted log.
        """
        with _errors(self.path):
            infos = self.filesystem.get_file_info(pyarrow.fs.FileSelector(self.path, allow_not_found=True))
        return {info.base_name for info in infos} == {LOCK, SECRET}

    def require(self) -> Identity:
        """Return the log's identity.

        It raises `JournalMissing` if there is no such log, or it cannot be seen from this machine; and `JournalCorrupt`
        if there are segments, but no identity.
        """
        identity = self.identity()
        if identity is not None:
            return identity
        if self.segments():
            raise without_identity(self.path)
        raise JournalMissing(
            f"{self.path}: there is no such log, or it cannot be seen from this machine; check the path and the "
            "mount, or run `weirpool collect` first"
        )

    def require_complete(self) -> None:
        """Raise `JournalError` if the log was not closed before its machine stopped: redo files may complete it."""
        data = self.small(UNSYNCED, MAX_RELIANCE_BYTES)
        if data is not None and decode_reliance(data, f"{self.path}/{UNSYNCED}").broken_off:
            raise JournalError(
                f"{self.path}: the machine of its collector has stopped, and the end of the log is still in redo files;"
                " start the collector, which completes it, or use `weirpool journal repair --apply`"
            )

    def kept_gaps(self) -> list[Gap]:
        """Return the gaps of trimmed segments, and of accepted losses, in order; `JournalCorrupt` if damaged."""
        data = self.small(GAPS, MAX_GAPS_BYTES)
        return [] if data is None else decode_gaps(data, f"{self.path}/{GAPS}")

    def trimmed(self, uuid: str) -> int:
        """Return the position below which rows of the log with this UUID were trimmed; 0 if none were.

        A file that is damaged, or belongs to another log, raises `JournalCorrupt`.
        """
        data = self.small(TRIMMED, MAX_TRIMMED_BYTES)
        return 0 if data is None else decode_trimmed(data, uuid, f"{self.path}/{TRIMMED}")

    def is_sealed(self) -> bool:
        """Return True if some segments of the log are, or may be, sealed."""
        return self.small(SEALED, 0) is not None

    def small(self, file_name: str, limit: int) -> bytes | None:
        """Return a file other than a segment, cut one byte after `limit`; None if there is no such file."""
        name = f"{self.path}/{file_name}"
        with _errors(name):
            try:
                with self.filesystem.open_input_stream(name) as file:
                    return bytes(file.read(limit + 1))
            except FileNotFoundError:
                return None

    def mark(self) -> Mark | None:
        """Return the durable mark, or None if there is none, as when only the segments were copied.

        It raises `JournalCorrupt` if the file exists, but contains no valid mark.
        """
        for _ in range(_MARK_TRIES):
            data = self.small(DURABLE, MAX_MARK_FILE_BYTES)
            found = newest(data or b"")
            if data is None or found is not None:
                return found[1] if found else None
        raise JournalCorrupt(
            f"{self.path}/{DURABLE}: neither of its two slots has a valid mark, so the end of the log is unknown; "
            "restore this file from a copy, or see what `weirpool journal repair` can do"
        )


@contextmanager
def _errors(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno in NO_RESOURCES:
            raise converted(error, name, "be read") from error
        raise JournalError(
            f"{name}: cannot be read ({error}); check the path, its permissions and the network"
        ) from error
