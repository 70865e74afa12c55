"""The secrets that resume a collector's session, in a file that other users cannot read; they are never in a segment.

The file is written before a stream is opened, so that the next process knows of a stream that the log has no record of.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from secrets import randbits

import msgspec

from ..texts import concealed
from .disk import disk_errors, read_file, replace_file, sync_folder
from .layout import SECRET

__all__ = ["MAX_SECRET_BYTES", "Secret", "drop", "encode", "load", "new_session", "put", "save", "tidy"]

MAX_SECRET_BYTES = 1 << 20
"""The size of the file: a token and a state have at most 64 KiB each, requests 512 KiB, all of them in base64."""


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """Secrets that only a collector's next process may know."""

    owner: str
    """The log's UUID; while there is no log, the digest of the request."""
    session: int
    """The number of the session. States contain it instead of the token."""
    token: bytes = b""
    """Resumes the session; empty if it cannot be resumed."""
    private: bytes = b""
    """The private part of the checkpoint: requests that the publisher has not confirmed, with their credentials."""
    state: bytes | None = None
    """The collector's state, until the log has one of this session."""
    gap: str = ""
    """Why items are missing before the first row of this session, if the log has no record of it yet."""

    __repr__ = concealed


def new_session() -> int:
    """Return a number that no other session has, in any log: a copied secret matches none."""
    return randbits(53) | 1 << 52


def load(folder: Path) -> Secret | None:
    """Return the secret in a log's folder; None if there is none, or it is damaged."""
    data = read_file(folder / SECRET, MAX_SECRET_BYTES)
    with suppress(msgspec.MsgspecError, ValueError, RecursionError):
        return None if data is None else msgspec.json.decode(data, type=Secret)
    return None


def encode(secret: Secret) -> bytes:
    """Return the content of the file."""
    return msgspec.json.encode(secret) + b"\n"


def save(folder: Path, secret: Secret) -> None:
    """Replace the secret; it is durable on return. On `DiskFull` the previous one still exists."""
    put(folder, encode(secret))


def put(folder: Path, content: bytes) -> None:
    """Replace the file; as for `save`."""
    path = folder / SECRET
    with disk_errors(path, "be written"):
        replace_file(path, content)


def tidy(folder: Path) -> None:
    """Remove temporary files of a killed process. The caller holds the log's lock."""
    with disk_errors(folder / SECRET, "be cleaned up"):
        for path in folder.glob(f".{SECRET}.*"):
            path.unlink(missing_ok=True)


def drop(folder: Path) -> None:
    """Delete the secret, if there is one."""
    path = folder / SECRET
    with disk_errors(path, "be removed"), suppress(FileNotFoundError):
        path.unlink()
        sync_folder(folder)
