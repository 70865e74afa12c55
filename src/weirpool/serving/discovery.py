"""The file by which a journal's readers find its collector: written by the collector, read by Spark's driver.

It is in the journal's folder, and names an address, never a secret. It counts while its collector holds a lock on the
file beside it, which the system releases when the collector dies.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import stat
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from ..access.exposure import is_local
from ..access.listening import FILES
from ..errors import JournalError, JournalLocked, LocalError, WeirpoolError
from ..journal.disk import make_folder, replace_file
from ..journal.layout import SERVED
from ..journal.lock import Lock
from ..urls import Url, parse_url
from .access import JOURNAL, has_secret

__all__ = ["HOSTS", "Announcements", "Found", "address_of", "discovered"]

logger = logging.getLogger("weirpool.serving")

LOCK: Final = "_served.lock"
VERSION: Final = 1
MAX_BYTES: Final = 4_096
MAX_WARNINGS: Final = 64
HOSTS: Final = "WEIRPOOL_JOURNAL_HOSTS"
"""The environment variable with the hosts, separated by commas, that may get this process's credentials."""


class _Content(msgspec.Struct, frozen=True):
    """The content of the file."""

    v: int
    url: str
    """The collector's URL, as its clients write it."""
    host: str
    """The name of its machine."""


@dataclass(frozen=True, slots=True)
class Found:
    """A collector that was found by the file in a journal's folder."""

    url: str
    host: str

    def checked(self) -> str:
        """Return the URL if this process may connect to it.

        Raises:
            LocalError: It is an address of another machine's own, or credentials would go to a host that nobody has
                named here: whoever can write to the journal's folder must not be able to collect them.

        """
        url = parse_url(self.url)
        if is_local(url):
            if self.host != socket.gethostname():
                raise LocalError(
                    f"its collector listens on {self.url} of the machine {self.host} only; serve it at an address that "
                    "this machine can reach"
                )
        elif has_secret() and url.host not in _hosts():
            raise LocalError(
                f"its collector is at {self.url}, and the variables WEIRPOOL_JOURNAL_… have credentials, which are "
                f"sent only to known hosts; set {HOSTS}={url.host}, or load the URL instead of the folder"
            )
        return self.url


def _hosts() -> list[str]:
    return [host.strip().lower() for host in os.environ.get(HOSTS, "").split(",")]


def discovered(folder: str) -> Found | None:
    """Return the collector that serves the journal in a folder; None if there is none.

    A file that others may have written, that is not valid, or whose collector has ended is ignored.
    """
    try:
        data = _trusted(Path(folder, SERVED))
        if data is None or not _is_held(Path(folder, LOCK)):
            return None
        content = msgspec.json.decode(data, type=_Content)
        url = parse_url(content.url)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError, WeirpoolError) as error:
        _warn(folder, str(error))
        return None
    if content.v != VERSION or url.options.keys() - {JOURNAL}:
        _warn(folder, "it is not one of this version")
        return None
    return Found(content.url, content.host)


@lru_cache(MAX_WARNINGS)
def _warn(folder: str, reason: str) -> None:
    """Log why a file is ignored, once: a driver looks at it for each micro-batch."""
    logger.warning("%s: %s is ignored: %s", folder, SERVED, reason)


def _trusted(path: Path) -> bytes | None:
    """Return the content of a file; ValueError if others than this user, or the folder's owner, may have written it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        owners = {0, os.geteuid(), os.stat(path.parent).st_uid}
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in owners or status.st_mode & 0o022:
            raise ValueError("other users may have written it")
        return file.read(MAX_BYTES)


def _is_held(path: Path) -> bool:
    """Return True if a process holds the lock of a file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def address_of(listening: str, given: str | None = None) -> str:
    """Return the URL by which clients reach a server.

    Args:
        listening: The URL that it listens on, with the actual port.
        given: The URL that clients use instead, if they reach it in another way.

    Raises:
        LocalError: `given` has options, or no host or port.

    """
    if given is not None:
        url = parse_url(given)
        if url.options or (url.port is not None and not (url.host and url.port)):
            raise LocalError(f"address: {given!r} must have a host, a port and no options")
        return given
    url = parse_url(listening)
    options = {name: value for name, value in url.options.items() if name not in (*FILES, "fd", "mode", "group")}
    return str(replace(url, host=_host(url), options=options))


def _host(url: Url) -> str:
    """Return the host of a URL as others name it."""
    return socket.gethostname() if url.port is not None and url.host in ("", "0.0.0.0", "::") else url.host


class Announcements:
    """The files of the journals that this process serves.

    Args:
        address: The URL by which clients reach this process, without the name of a journal.

    """

    def __init__(self, address: str) -> None:
        self._address = parse_url(address)
        self._held: dict[tuple[str, str], Lock] = {}
        self._failures: dict[str, str] = {}
        # A caller that is canceled cannot stop a thread that waits for a disk.
        self._lock = threading.Lock()

    def url(self, name: str) -> str:
        """Return the URL of a journal."""
        return str(replace(self._address, options={**self._address.options, JOURNAL: name}))

    def update(self, folders: Mapping[str, str]) -> None:
        """Announce these journals, and no others.

        Call it again from time to time: another collector may have announced one of them until now, or a disk may have
        failed. It may be called in any thread.
        """
        with self._lock:
            for name, folder in self._held.keys() - folders.items():
                self._withdraw(name, folder)
            for name, folder in folders.items() - self._held.keys():
                try:
                    self._announce(name, folder)
                except JournalLocked:
                    # By another collector; or a reader looks at the lock for a moment.
                    continue
                except (JournalError, OSError) as error:
                    self._failed(folder, str(error))

    def close(self) -> None:
        """Withdraw all of them."""
        self.update({})

    def _announce(self, name: str, folder: str) -> None:
        make_folder(Path(folder))
        lock = Lock(Path(folder, LOCK))
        try:
            content = _Content(VERSION, self.url(name), socket.gethostname())
            replace_file(Path(folder, SERVED), msgspec.json.encode(content) + b"\n", fsync=False)
        except BaseException:
            lock.close()
            raise
        self._held[name, folder] = lock

    def _failed(self, folder: str, reason: str) -> None:
        if self._failures.get(folder) != reason:
            logger.warning("%s: readers cannot find this collector by %s: %s", folder, SERVED, reason)
        self._failures[folder] = reason

    def _withdraw(self, name: str, folder: str) -> None:
        lock = self._held.pop((name, folder))
        with suppress(OSError):
            Path(folder, SERVED).unlink(missing_ok=True)
            lock.remove()
        lock.close()
