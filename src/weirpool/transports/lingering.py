"""Limits how long a closing link waits for its output to be sent, and for the peer to close too."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any, Final

__all__ = ["BACKLOG_BYTES", "LINGER", "MAX_LINGER", "STALL_TIMEOUT", "Linger", "tcp_progress"]

LINGER: Final = 1.0
"""Seconds that a peer may take to close its half, after ours is closed and all output is sent."""
MAX_LINGER: Final = 30.0
"""Maximum seconds of a close while output is being sent. The `ws` package, and so River's reference, waits as long."""
STALL_TIMEOUT: Final = 3.0
"""Seconds without progress after which output is discarded. Slow links accept it in large steps."""
BACKLOG_BYTES: Final = 4_096
"""Output up to this size is sent together with the end of the link, and is not waited for."""
TCP_INFO: Final[int | None] = getattr(socket, "TCP_INFO", None)
BYTES_ACKED: Final = 120
"""The offset of this 64-bit field in Linux's `struct tcp_info`, since Linux 4.1."""
INFO_BYTES: Final = 128
_uint64 = struct.Struct("=Q")
_int = struct.Struct("=i")


class Linger:
    """Aborts a closing link when its output makes no more progress.

    The peer may take `seconds` to close too, when at most `BACKLOG_BYTES` wait.
    """

    __slots__ = ("_abort", "_ends", "_loop", "_moved_at", "_progress", "_seconds", "_taken", "_timer", "_was_waiting")

    def __init__(self, seconds: float, progress: Callable[[], tuple[int, int]], abort: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._progress = progress
        self._abort = abort
        self._moved_at = self._loop.time()
        self._ends = self._moved_at + MAX_LINGER
        waiting, self._taken = progress()
        self._was_waiting = waiting > BACKLOG_BYTES
        self._timer = self._loop.call_later(seconds, self._check)

    def cancel(self) -> None:
        """Stop, because the link is closed, and let go of it."""
        self._timer.cancel()
        self._abort = _ignore

    def _check(self) -> None:
        now = self._loop.time()
        waited = self._was_waiting
        waiting, taken = self._progress()
        if taken > self._taken:
            self._taken, self._moved_at = taken, now
        self._was_waiting = waiting > BACKLOG_BYTES
        if waited and now - self._moved_at < STALL_TIMEOUT and now < self._ends:
            self._timer = self._loop.call_later(self._seconds, self._check)
        else:
            self._abort()


def _ignore() -> None:
    """Do nothing."""


def tcp_progress(connection: Any) -> tuple[int, int | None]:
    """Return the bytes in the socket's send queue, and the bytes that the peer has acknowledged so far.

    They are 0 and None if they are unknown.
    """
    try:
        return _queued(connection), _confirmed(connection)
    except (OSError, ValueError, AttributeError, ImportError):
        # There is no socket, it is closed, or the system does not support this.
        return 0, None


def _queued(connection: Any) -> int:
    # Not available on Windows.
    from fcntl import ioctl
    from termios import TIOCOUTQ

    return int(_int.unpack(ioctl(connection.fileno(), TIOCOUTQ, bytes(_int.size)))[0])


def _confirmed(connection: Any) -> int | None:
    if TCP_INFO is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    info = connection.getsockopt(socket.IPPROTO_TCP, TCP_INFO, INFO_BYTES)
    return int(_uint64.unpack_from(info, BYTES_ACKED)[0]) if len(info) >= INFO_BYTES else None
