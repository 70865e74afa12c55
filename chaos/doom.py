"""Kills a process at a moment that is hard to hit from outside: ``MOMENT:SECONDS`` (a delay after it), or ``no``.

``secret``: the collector's state was first written next to its log. ``kept``: its first checkpoint was written.
``opened``: the log is open. ``connected``: there is a link. ``appended``: some items are on the disk, but not yet
acknowledged to their publisher.
"""

from __future__ import annotations

import inspect
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, Final

from weirpool.aio.dialer import Dialer
from weirpool.journal.feedlog import FeedLog
from weirpool.journal.writer import JournalWriter

__all__ = ["MOMENTS", "be_doomed"]

MOMENTS: Final[dict[str, tuple[type, str]]] = {
    "secret": (FeedLog, "begin"),
    "kept": (FeedLog, "keep"),
    "opened": (FeedLog, "__init__"),
    "connected": (Dialer, "open"),
    "appended": (JournalWriter, "append"),
}
"""The method after whose first call in this process each moment occurs."""


def be_doomed(doom: str) -> None:
    """Kill this process at the moment that `doom` describes."""
    moment, _, seconds = doom.partition(":")
    if moment == "no":
        return
    owner, name = MOMENTS[moment]
    setattr(owner, name, _last(getattr(owner, name), float(seconds)))


def _last(work: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    """Wrap `work` to kill the process this many seconds after its first call."""

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
