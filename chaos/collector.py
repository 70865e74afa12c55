"""``penstock collect`` on a late machine and a disk that fills: ``python -m chaos.collector LATE ARGUMENTS``.

LATE is what a busy machine does between a link and what follows it: ``no``, ``waits:SECONDS``, in which the event loop
goes on with everything else, or ``blocks:SECONDS``, in which nothing runs. SIGUSR1 fills the disk, SIGUSR2 frees it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from penstock.aio.dialer import Dialer
from penstock.cli.main import run

if TYPE_CHECKING:
    from typing_extensions import Buffer

WRITE = os.pwrite


def be_late(late: str) -> None:
    """Have all that follows a connection come late."""
    how, _, seconds = late.partition(":")
    if how == "no":
        return
    opened: Callable[..., Awaitable[Any]] = Dialer.open

    async def open_late(*arguments: Any) -> None:
        await opened(*arguments)
        if how == "blocks":
            time.sleep(float(seconds))  # noqa: ASYNC251
        else:
            await asyncio.sleep(float(seconds))

    Dialer.open = open_late  # type: ignore[method-assign, assignment]


def fill(number: int, frame: FrameType | None) -> None:
    """Refuse what is written to the disk from now on, after some of it was written."""

    def refuse(descriptor: int, data: Buffer, offset: int) -> int:
        half = memoryview(data)
        WRITE(descriptor, half[: len(half) // 2], offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.pwrite = refuse


def free(number: int, frame: FrameType | None) -> None:
    """Take what is written again."""
    os.pwrite = WRITE


if __name__ == "__main__":
    be_late(sys.argv.pop(1))
    signal.signal(signal.SIGUSR1, fill)
    signal.signal(signal.SIGUSR2, free)
    run()
