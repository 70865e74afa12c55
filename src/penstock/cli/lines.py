"""Items that are given as lines: in an argument, a file, or on standard input as they come."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import Final

from .arguments import read_bytes

__all__ = ["lines_of"]

READ_BYTES: Final = 64 * 1024


def lines_of(value: str) -> list[bytes] | AsyncIterator[bytes]:
    """Return the lines that an argument stands for; those of standard input are read while others travel.

    Raises:
        LocalError: The file cannot be read.

    """
    return _standard_input() if value == "-" else read_bytes(value).splitlines()


async def _standard_input() -> AsyncIterator[bytes]:
    rest = b""
    while chunk := await _read(sys.stdin.fileno()):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest


async def _read(descriptor: int) -> bytes:
    """Return what can be read, once there is something.

    No thread reads: one that waits for a line which nobody types could not be stopped. And the descriptor stays
    blocking: on a terminal the shell and our own output share it.
    """
    if _waits(descriptor):
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(descriptor, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(descriptor)
    return os.read(descriptor, READ_BYTES)


def _waits(descriptor: int) -> bool:
    """Return whether reading may wait for somebody; files never do, and the event loop refuses to watch them."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
