"""The identity of a log: its UUID, and the request that it collects. Written once, when the log is created."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
import xxhash

from ..errors import JournalCorrupt, JournalMismatch, JournalMissing
from .disk import converted, disk_errors, locking, read_file, replace_file
from .layout import IDENTITY

__all__ = [
    "FORMAT",
    "MAX_IDENTITY_BYTES",
    "Fingerprint",
    "Identity",
    "Request",
    "create",
    "decode",
    "encode",
    "load",
    "locked",
    "without_identity",
]

FORMAT = 2
"""The version of the journal's format."""
MAX_IDENTITY_BYTES = 1 << 20
"""The maximum size of `_log.json`: a route has at most 64 KiB, and a URL hardly more."""


class Fingerprint(msgspec.Struct, frozen=True):
    """A request as recorded in a log, without the bytes of its data and metadata."""

    route: str
    """The stream."""
    data: str
    """The digest of the request's data."""
    metadata: str | None = None
    """The digest of its metadata; None if it has none."""
    url: str = ""
    """The publisher, for people. It is not compared, because publishers move."""


class Identity(msgspec.Struct, frozen=True):
    """The identity of a log.

    Attributes:
        uuid: The log's UUID; a log that is deleted and collected again has another one.
        created: When the log was created.
        request: The collected request; None if its writer did not name one.

    """

    uuid: str
    created: datetime
    request: Fingerprint | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """The request that a log collects: another request needs another log.

    Omit values from `metadata` that change from one process to the next, such as credentials.

    Args:
        route: The stream.
        data: The request's data.
        metadata: Its metadata, or None.
        url: The publisher. It is recorded for people, without user information and query.

    """

    route: str
    data: bytes = b""
    metadata: bytes | None = None
    url: str = ""

    def fingerprint(self, log: str) -> Fingerprint:
        """Return the request as recorded in the log with this UUID. Digests of two logs cannot be compared."""
        metadata = None if self.metadata is None else _digest(log, self.metadata)
        return Fingerprint(self.route, _digest(log, self.data), metadata, _public(self.url))

    def digest(self) -> str:
        """Return a digest that is unique to this request."""
        parts = (self.route.encode(errors="surrogatepass"), self.data, self.metadata)
        return hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()

    def differences(self, identity: Identity) -> Iterator[str]:
        """Yield the differences between this request and a log's, for people; nothing if the log has none."""
        if identity.request is None:
            return
        mine = self.fingerprint(identity.uuid)
        if mine.route != identity.request.route:
            yield f"route {identity.request.route!r}"
        if mine.data != identity.request.data:
            yield "different data"
        if mine.metadata != identity.request.metadata:
            yield "different metadata"

    def check(self, identity: Identity, log: Path | str) -> None:
        """Check that a log collects this request.

        Raises:
            JournalMismatch: It collects another one.

        """
        others = " and ".join(self.differences(identity))
        if others:
            raise JournalMismatch(
                f"{log}: this log collects a request with {others}, not the requested {self.route!r}; "
                "choose another source name for another request (--source, or source of a feed)"
            )


def create(folder: Path, request: Request | None, *, fsync: bool = True) -> Identity:
    """Write the identity of a new log; it is durable on return. The caller holds the log's lock."""
    name = str(uuid.uuid4())
    fingerprint = None if request is None else request.fingerprint(name)
    identity = Identity(name, datetime.now(UTC), fingerprint)
    path = folder / IDENTITY
    with disk_errors(path, "be written"):
        replace_file(path, encode(identity), fsync=fsync)
    return identity


def encode(identity: Identity) -> bytes:
    """Return the file content of an identity."""
    return msgspec.json.encode(_fields(identity) | {"checksum": _checksum(identity)}) + b"\n"


def _fields(identity: Identity) -> dict[str, Any]:
    return {"weirpool": FORMAT, **msgspec.to_builtins(identity)}


def _checksum(identity: Identity) -> str:
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(_fields(identity)))


def load(folder: Path) -> Identity | None:
    """Return the identity of a log on this machine, or None if there is no such file; errors as for `decode`."""
    path = folder / IDENTITY
    data = read_file(path, MAX_IDENTITY_BYTES + 1)
    return None if data is None else decode(data, path)


@contextmanager
def locked(folder: Path) -> Iterator[Identity]:
    """Hold the own lock of a log on this machine, and yield its identity. It is the lock of what readers record.

    It is on the file of the identity, which every log has: on a full disk there is no space for another one.

    Raises:
        JournalMissing: There is no such log.
        JournalCorrupt: Its identity is damaged.
        JournalError: The file cannot be locked.

    """
    path = folder / IDENTITY
    missing = JournalMissing(f"{folder}: there is no log here; check the path and the mount")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise missing from None
    except OSError as error:
        raise converted(error, path, "be locked") from error
    with disk_errors(path, "be locked"), locking(fd):
        identity = load(folder)
        if identity is None:
            raise missing
        yield identity


def decode(data: bytes, name: Path | str) -> Identity:
    """Return the identity in the file `name`.

    It raises `JournalCorrupt` if that differs from what was written, or has another version of the format.
    """
    try:
        if len(data) > MAX_IDENTITY_BYTES:
            raise ValueError(f"longer than {MAX_IDENTITY_BYTES} bytes")
        head = msgspec.json.decode(data, type=_Version)
        version = head.weirpool
        if version > FORMAT:
            raise JournalCorrupt(
                f"{name}: the log has format {version}, which a newer version of Weirpool has written; "
                f"this one reads format {FORMAT}; update Weirpool"
            )
        identity = msgspec.json.decode(data, type=Identity)
        _validate(version, identity)
        if head.checksum not in (None, _checksum(identity)):
            raise ValueError("its checksum does not match")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalCorrupt(
            f"{name}: is not the identity of a log ({error}); restore the file from a copy of this log"
        ) from None
    return identity


def without_identity(folder: Path | str) -> JournalCorrupt:
    """Return the error for a log with segments but no `_log.json`."""
    return JournalCorrupt(
        f"{folder}: has segments but no {IDENTITY}: restore that file if this is a copy; a journal of format 1 cannot "
        f"be read by this version, so collect it again in another folder"
    )


class _Version(msgspec.Struct):
    weirpool: int
    checksum: str | None = None


def _validate(version: int, identity: Identity) -> None:
    if version != FORMAT:
        raise ValueError(f"format {version}")
    if str(uuid.UUID(identity.uuid)) != identity.uuid:
        raise ValueError("its UUID is not in canonical form")
    if identity.created.tzinfo is None:
        raise ValueError("its time has no time zone")


def _digest(log: str, data: bytes) -> str:
    """Return a salted digest, so that short data, such as a number, cannot be looked up in a table."""
    return hashlib.sha256(log.encode() + b"\0" + data).hexdigest()


def _public(url: str) -> str:
    """Return a URL without possible secrets."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
