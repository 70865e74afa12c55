"""Certificates that are read again when their files have changed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final, Generic, TypeVar

from ..errors import UrlError
from ..urls import Url

__all__ = ["CHECK_SECONDS", "Reloaded"]

logger = logging.getLogger("weirpool.transports")

CHECK_SECONDS: Final = 1.0
"""The shortest time between two looks at the files."""

T = TypeVar("T")


class Reloaded(Generic[T]):
    """What was made from files, and is made again when they have changed.

    Args:
        url: The URL of the listener.
        options: Its options that name files.
        make: Reads the files. It raises UrlError if that fails, as this constructor then does.

    """

    def __init__(self, url: Url, options: Iterable[str], make: Callable[[], T]) -> None:
        self._files = [url.options[name] for name in options if name in url.options]
        self._make = make
        self._found = self._look()
        self._looked_at = monotonic()
        self._made = make()

    def current(self) -> T:
        """Return what was made of the files as they are now, or before if they are not valid now."""
        now = monotonic()
        if now - self._looked_at >= CHECK_SECONDS:
            self._looked_at = now
            found = self._look()
            if found != self._found:
                # Noted even if it fails: it is tried again only when the files change again.
                self._found = found
                self._reload()
        return self._made

    def _look(self) -> list[tuple[int, int, int] | None]:
        """Return what changes with the files."""
        return [_version(file) for file in self._files]

    def _reload(self) -> None:
        try:
            self._made = self._make()
        except UrlError as error:
            logger.warning("the certificates have changed, but the old ones stay in use: %s", error)
        else:
            logger.info("the certificates of %s have changed, and are used from now on", " and ".join(self._files))


def _version(file: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
