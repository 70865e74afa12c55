"""The folder of a server's sessions: its lock, its logs, and the removal of abandoned ones."""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..access.private import open_private
from ..errors import SessionStoreError
from ..session import Run
from .log import TEMPORARY, Log, store_errors

__all__ = ["SessionFolder", "run_at_once"]

logger = logging.getLogger("weirpool.store")

SUFFIX: Final = ".session"
LOCK: Final = "lock"
_NAME = re.compile(r"[0-9a-f]{64}")


def run_at_once(work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
    """Do `work`, then call `done`. See `weirpool.session.Run`."""
    try:
        work()
    except Exception as error:
        done(error)
    else:
        done(None)


class SessionFolder:
    """The :class:`weirpool.session.SessionLogs` of one server. Only one server can use the folder at a time.

    Args:
        path: The folder; created if necessary.
        run: Runs work that waits for the disk. By default it runs at once and blocks.

    Raises:
        SessionStoreError: Another server uses the folder, or it cannot be used.

    """

    def __init__(self, path: Path, run: Run = run_at_once) -> None:
        self.run = run
        self._path = path
        self._open: set[str] = set()
        with store_errors(path, "be used"):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = open_private(path / LOCK, os.O_RDWR)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise SessionStoreError(
                f"{path}: another server stores its sessions there; stop it, or choose another folder"
            ) from None
        self._closed_logs = self._found()

    def _found(self) -> set[str]:
        """Return the names of the logs of an earlier process, and remove incomplete ones."""
        names = set()
        with store_errors(self._path, "be listed"):
            for file in self._path.iterdir():
                if file.suffix == SUFFIX and _NAME.fullmatch(file.stem):
                    names.add(file.stem)
                elif file.name.endswith(SUFFIX + TEMPORARY):
                    file.unlink()
        return names

    def __len__(self) -> int:
        return len(self._closed_logs) + len(self._open)

    def create(self, name: str) -> Log | None:
        """Return a new log, or None if the name is taken. See :meth:`weirpool.session.SessionLogs.create`."""
        if name in self._open or name in self._closed_logs:
            return None
        return self._log(name)

    def open(self, name: str) -> tuple[Log, list[bytes]] | None:
        """Return a log of an earlier process. See :meth:`weirpool.session.SessionLogs.open`.

        Raises SessionStoreError if it is damaged. The file stays in place.
        """
        if name not in self._closed_logs:
            return None
        log = self._log(name)
        try:
            records = log.read()
        except SessionStoreError as error:
            log.close()
            logger.error("%s", error)
            raise
        self._closed_logs.discard(name)
        return log, records

    def expire(self) -> None:
        """Remove the logs that no client has resumed since the folder was opened."""
        for name in self._closed_logs - self._open:
            with suppress(OSError):
                self._place(name).unlink()
        self._closed_logs.clear()

    def close(self) -> None:
        """Release the folder. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _log(self, name: str) -> Log:
        self._open.add(name)
        return Log(self._place(name), lambda: self._closed(name))

    def _closed(self, name: str) -> None:
        self._open.discard(name)
        if self._place(name).exists():
            self._closed_logs.add(name)

    def _place(self, name: str) -> Path:
        return self._path / (name + SUFFIX)
