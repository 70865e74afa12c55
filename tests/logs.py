"""The root logger, which a command line sets up for its process, and which tests share."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["kept_logging", "restore_logging"]

Handlers = tuple[logging.Handler, ...]
_root: Final = logging.getLogger()


@contextmanager
def kept_logging() -> Iterator[None]:
    """Restore the handlers and the level of the root logger afterwards."""
    handlers, level = tuple(_root.handlers), _root.level
    try:
        yield
    finally:
        restore_logging(handlers, level)


def restore_logging(handlers: Handlers, level: int) -> bool:
    """Give the root logger these handlers and this level; return whether it had others."""
    changed = (tuple(_root.handlers), _root.level) != (handlers, level)
    if changed:
        _root.handlers[:] = handlers
        # Loggers remember which levels are enabled; this makes them forget.
        _root.setLevel(level)
    return changed
