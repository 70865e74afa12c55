"""A process that is killed at a moment that nobody hits from outside: ``MOMENT:SECONDS``, so long after it; or ``no``.

``secret``: the collector's state is beside its log for the first time. ``kept``: so is its first checkpoint.
``opened``: the log is open. ``connected``: there is a link. ``appended``: some items are on the disk, and their
publisher does not know.
"""

from __future__ import annotations

import inspect
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, Final

from penstock.aio.dialer import Dialer
from penstock.journal.feedlog import FeedLog
from penstock.journal.writer import JournalWriter

__all__ = ["MOMENTS", "be_doomed"]

MOMENTS: Final[dict[str, tuple[type, str]]] = {
    "secret": (FeedLog, "begin"),
    "kept": (FeedLog, "keep"),
    "opened": (FeedLog, "__init__"),
    "connected": (Dialer, "open"),
    "appended": (JournalWriter, "append"),
}
"""What has happened then for the first time in this process."""


def be_doomed(doom: str) -> None:
    """Have this process killed where `doom` says so."""
    moment, _, seconds = doom.partition(":")
    if moment == "no":
        return
    owner, name = MOMENTS[moment]
    setattr(owner, name, _last(getattr(owner, name), float(seconds)))


def _last(work: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    """Return what does `work`, after which the process does not live for long."""

    def die() -> None:
        if seconds:
            thread = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
            thread.daemon = True
            thread.start()
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    def done(*arguments: Any, **options: Any) -> Any:
        result = work(*arguments, **options)
        die()
        return result

    async def awaited(*arguments: Any, **options: Any) -> Any:
        result = await work(*arguments, **options)
        die()
        return result

    return awaited if inspect.iscoroutinefunction(work) else done
