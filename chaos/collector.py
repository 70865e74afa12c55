"""``weirpool collect`` with delays and a full disk: ``python -m chaos.collector LATE DOOM ARGUMENTS``.

LATE is described in `chaos.lateness`, DOOM in `chaos.doom`. SIGUSR1 fills the disk, SIGUSR2 frees it.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Coroutine
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from weirpool.aio import loop
from weirpool.cli.main import run

from .children import listen
from .doom import be_doomed
from .lateness import be_late, late_main

if TYPE_CHECKING:
    from typing_extensions import Buffer

T = TypeVar("T")

WRITE = os.pwrite
RUN = loop.run


def fill(number: int, frame: FrameType | None) -> None:
    """Make each write to the disk fail after half of its data."""

    def refuse(descriptor: int, data: Buffer, offset: int) -> int:
        half = memoryview(data)
        WRITE(descriptor, half[: len(half) // 2], offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.pwrite = refuse


def free(number: int, frame: FrameType | None) -> None:
    """Let writes succeed again."""
    os.pwrite = WRITE


def run_late(late: str, main: Coroutine[Any, Any, T]) -> T:
    """Run `main` as `weirpool collect` does, on a delayed loop."""
    return RUN(late_main(late, main))


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, fill)
    signal.signal(signal.SIGUSR2, free)
    chosen = sys.argv.pop(1)
    be_late(chosen)
    be_doomed(sys.argv.pop(1))
    loop.run = partial(run_late, chosen)
    listen()
    run()
