"""What resumes a collector's session, in a file that nobody else may read: none of it ever enters a segment.

It is written before a stream is opened, so that its next process knows of a stream of which the log says nothing yet.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from secrets import randbits

import msgspec

from .disk import disk_errors, replace_file, sync_folder
from .layout import SECRET

__all__ = ["MAX_SECRET_BYTES", "Secret", "drop", "load", "new_session", "save", "tidy"]

MAX_SECRET_BYTES = 1 << 20
"""Of the file: a token takes 64 KiB at most, and so does a state; requests take 512 KiB. All are in base64."""


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """What a collector's next process needs and nobody else may know.

    Attributes:
        owner: The log's UUID; while there is no log, the digest of the request.
        session: The number of the session. States name it instead of the token.
        token: Resumes the session; empty where it cannot be resumed.
        private: The private part of the checkpoint: requests that the publisher has not confirmed, with their
            credentials.
        state: The collector's, until the log has one of this session.
        gap: Why items are missing before the first row of this session, where the log does not say so yet.

    """

    owner: str
    session: int
    token: bytes = b""
    private: bytes = b""
    state: bytes | None = None
    gap: str = ""


def new_session() -> int:
    """Return a number that no other session has, in this log or another: a secret that was copied fits none."""
    return randbits(53) | 1 << 52


def load(folder: Path) -> Secret | None:
    """Return the secret that a log's folder holds; None if there is none, or it is damaged.

    Raises:
        JournalError: The file cannot be read.

    """
    path = folder / SECRET
    with disk_errors(path, "be read"):
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_SECRET_BYTES)
        except FileNotFoundError:
            return None
    with suppress(msgspec.MsgspecError, ValueError, RecursionError):
        return msgspec.json.decode(data, type=Secret)
    return None


def save(folder: Path, secret: Secret) -> None:
    """Keep a secret, and forget the one before it; it is durable when this returns.

    Raises:
        DiskFull: There is no room. The one before it is still there.
        JournalError: The disk failed.

    """
    path = folder / SECRET
    with disk_errors(path, "be written"):
        replace_file(path, msgspec.json.encode(secret) + b"\n")


def tidy(folder: Path) -> None:
    """Remove what a process that was killed has left of the file. The caller holds the log's lock."""
    with disk_errors(folder / SECRET, "be tidied up"):
        for path in folder.glob(f".{SECRET}.*"):
            path.unlink(missing_ok=True)


def drop(folder: Path) -> None:
    """Forget the secret, if there is one."""
    path = folder / SECRET
    with disk_errors(path, "be removed"), suppress(FileNotFoundError):
        path.unlink()
        sync_folder(folder)
