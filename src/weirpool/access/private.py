"""Files that only their owner can read, because they may contain credentials or what a peer has sent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, Final

from ..errors import LocalError

__all__ = ["create_private", "open_private", "replacing"]

# Windows has neither links like these nor modes.
_FLAGS: Final[int] = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def open_private(path: Path, flags: int) -> int:
    """Open or create a file, for this user only regardless of the umask; an existing one keeps its mode.

    Symbolic links are not followed. The flags are those of `os.open`; with `os.O_EXCL` the file must be new.
    """
    flags |= _FLAGS
    while True:
        try:
            fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if flags & os.O_EXCL:
                raise
            with suppress(FileNotFoundError):
                return os.open(path, flags)
        else:
            if hasattr(os, "fchmod"):
                os.fchmod(fd, 0o600)
            return fd


def create_private(path: Path) -> BinaryIO:
    """Create an empty file in place of one that exists, whose content and mode are gone.

    Raises:
        LocalError: There is something else than a file, such as a link; or the file cannot be created.

    """
    with _errors(path):
        part = _part_of(path)
        file = os.fdopen(open_private(part, os.O_WRONLY | os.O_EXCL), "wb")
        try:
            os.replace(part, path)
        except BaseException:
            file.close()
            part.unlink(missing_ok=True)
            raise
    return file


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file that takes the place of `path`, all at once, when the block ends without an error.

    Raises:
        LocalError: As for :func:`create_private`.

    """
    with _errors(path):
        part = _part_of(path)
        try:
            with os.fdopen(open_private(part, os.O_WRONLY | os.O_EXCL), "wb") as file:
                yield file
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _part_of(path: Path) -> Path:
    """Return the path of the new file. Raises LocalError if `path` is not a file that it may replace."""
    with suppress(FileNotFoundError):
        if not S_ISREG(path.lstat().st_mode):
            raise LocalError(f"{str(path)!r} is not a file, but a link, a folder or a device; name a file")
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    return part


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LocalError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
