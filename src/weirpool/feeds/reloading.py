"""Reads the file of feeds again when it has changed, and at SIGHUP."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..aio.signals import handled
from ..errors import LocalError
from .file import load
from .running import Control

__all__ = ["Watch", "follow"]

logger = logging.getLogger("weirpool.feeds")

POLL_SECONDS: Final = 1.0
"""How often the file is looked at. A change is applied when the file has stayed the same for so long."""


class Watch:
    """Notices that a file has changed, by its times and its size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = self._last = self._stamp()

    def changed(self) -> bool:
        """Return True once after each change, when the file has stayed the same since the last call."""
        now = self._stamp()
        settled = now == self._last
        self._last = now
        if not settled or now is None or now == self._known:
            return False
        self._known = now
        return True

    def _stamp(self) -> tuple[int, int, int, int] | None:
        """Return what changes with the file, also if a link to it does, as in Kubernetes; None if it is missing."""
        try:
            info = os.stat(self._path)
        except OSError:
            return None
        return info.st_dev, info.st_ino, info.st_mtime_ns, info.st_size


async def follow(path: Path, control: Control, warn: Callable[[str], None] = lambda problem: None) -> None:
    """Give `control` each valid version of a file, until this task is canceled. A version that is not valid is logged.

    Feeds with errors do not make a file invalid. `warn` is called with what is wrong with each, or an empty text.
    """
    wanted = asyncio.Event()
    watch = Watch(path)
    with handled(lambda _: wanted.set(), signal.SIGHUP):
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await wanted.wait()
            if watch.changed() or wanted.is_set():
                wanted.clear()
                try:
                    control.give(await asyncio.to_thread(load, path))
                    warn("")
                except LocalError as error:
                    problem = f"all feeds go on as before, because of the new file: {error}"
                    logger.error("%s", problem)
                    warn(problem)
