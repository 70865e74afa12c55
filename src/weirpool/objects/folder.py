"""A folder of this machine as a store: an object is a file, durable before it gets its name."""

from __future__ import annotations

import fcntl
import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from ..errors import DiskFull, LocalError, StoreError
from ..journal.disk import NO_ROOM, make_folder, open_private, sync_folder, write_at
from .ports import Data, Listing, Names

__all__ = ["FolderStore"]

_PARTIAL: Final = ".partial"
_numbers = itertools.count()


class FolderStore:
    """The objects below a folder, which need not exist yet. Files whose names begin with a dot are no objects.

    The file system must have hard links: they make `create` atomic.
    """

    conditional = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._root = Path(path)
        self._cleared: set[Path] = set()

    @property
    def uri(self) -> str:
        """The folder."""
        return str(self._root)

    def create(self, name: str, data: Data) -> bool:
        """Write a file unless it exists; see `Store.create`."""
        path = self._path(name)
        with _errors(path, "be created"), self._written(path, data) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            sync_folder(path.parent)
        return True

    def put(self, name: str, data: Data) -> None:
        """Write or replace a file."""
        path = self._path(name)
        with _errors(path, "be written"), self._written(path, data) as temporary:
            os.replace(temporary, path)
            sync_folder(path.parent)

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        """Return a part of a file; None if there is no such file."""
        path = self._path(name)
        with _errors(path, "be read"), suppress(FileNotFoundError), open(path, "rb") as file:
            file.seek(start)
            return file.read() if length is None else file.read(length)
        return None

    def list(self, folder: str, after: str = "") -> Listing:
        """Return the files below a folder; see `Store.list`."""
        with _errors(self._root / folder, "be listed"):
            return sorted((name, size) for name, size in self._files(folder) if name > after)

    def folders(self, folder: str = "") -> Names:
        """Return the folders in a folder."""
        with _errors(self._root / folder, "be listed"):
            return sorted(entry.name for entry in self._entries(folder) if entry.is_dir())

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; those of one folder in order, so that a power cut leaves the later ones."""
        for name in names:
            path = self._path(name)
            with _errors(path, "be deleted"), suppress(FileNotFoundError):
                path.unlink()
                sync_folder(path.parent)

    def local_path(self, name: str) -> Path:
        """Return the file of an object, which can be mapped into memory."""
        return self._path(name)

    def _path(self, name: str) -> Path:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or parts[-1].startswith("."):
            raise LocalError(f"{name[:200]!r} is not the name of an object")
        return self._root.joinpath(*parts)

    @contextmanager
    def _written(self, path: Path, data: Data) -> Iterator[Path]:
        """Write data durably to a temporary file beside `path`, which is removed at the end unless it was renamed.

        The file is locked: one that nobody has locked was left by a process that was killed.
        """
        make_folder(path.parent)
        if path.parent not in self._cleared:
            self._cleared.add(path.parent)
            _remove_left(path.parent)
        temporary, fd = _locked(path)
        try:
            write_at(fd, [data], 0)
            os.fsync(fd)
            yield temporary
        finally:
            os.close(fd)
            with suppress(OSError):
                temporary.unlink()

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        with suppress(FileNotFoundError), os.scandir(self._root / folder) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))

    def _files(self, folder: str) -> Iterator[tuple[str, int]]:
        for entry in self._entries(folder):
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir():
                yield from self._files(name)
            else:
                with suppress(FileNotFoundError):
                    yield name, entry.stat().st_size


def _locked(path: Path) -> tuple[Path, int]:
    """Create a temporary file beside a path, and lock it."""
    while True:
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}{_PARTIAL}")
        fd = open_private(temporary, os.O_WRONLY | os.O_EXCL)
        # Without locks on this file system, nobody can lock it to remove it either.
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return temporary, fd
        # Somebody has taken it for a file that was left, before it was locked.
        os.close(fd)


def _remove_left(folder: Path) -> None:
    """Remove the temporary files in a folder that processes have left which were killed while they wrote."""
    for temporary in folder.glob(f".*{_PARTIAL}"):
        # Another process may lock it or remove it meanwhile.
        with suppress(OSError):
            fd = os.open(temporary, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                temporary.unlink()
            finally:
                os.close(fd)


@contextmanager
def _errors(path: Path, action: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise DiskFull(f"{path}: cannot {action}: the disk is full; free some space") from error
        raise StoreError(
            f"{path}: cannot {action} ({error.strerror or error}); check the path, its permissions and the disk"
        ) from error
