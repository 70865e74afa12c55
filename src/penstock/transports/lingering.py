"""How long a link that is closing may take to send what waits, and its peer to close as well."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any, Final

__all__ = ["BACKLOG_BYTES", "LINGER", "LONGEST", "STALLED", "Linger", "taken"]

LINGER: Final = 1.0
"""Seconds that a peer may take to close its half, after we have closed ours and all output has left."""
LONGEST: Final = 30.0
"""Seconds that a close may take while output moves: as long as `ws`, and with it River's own implementation, waits."""
STALLED: Final = 3.0
"""Seconds after which output that does not move is given up. Slow links take it in gulps."""
BACKLOG_BYTES: Final = 4_096
"""No more than this leaves with the end of a link, and is not waited for."""
TCP_INFO: Final[int | None] = getattr(socket, "TCP_INFO", None)
BYTES_ACKED: Final = 120
"""Where Linux has it in its `struct tcp_info`: 64 bits, since Linux 4.1."""
INFO_BYTES: Final = 128
_uint64 = struct.Struct("=Q")
_int = struct.Struct("=i")


class Linger:
    """Aborts a link that is closing once nothing moves over it any more.

    The peer may take `seconds` to close as well, once little waits.
    """

    __slots__ = ("_abort", "_ends", "_loop", "_moved", "_progress", "_seconds", "_taken", "_timer", "_waited")

    def __init__(self, seconds: float, progress: Callable[[], tuple[int, int]], abort: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._progress = progress
        self._abort = abort
        self._moved = self._loop.time()
        self._ends = self._moved + LONGEST
        waiting, self._taken = progress()
        self._waited = waiting > BACKLOG_BYTES
        self._timer = self._loop.call_later(seconds, self._look)

    def cancel(self) -> None:
        """Let the link be: it is closed."""
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        waited = self._waited
        waiting, taken = self._progress()
        if taken > self._taken:
            self._taken, self._moved = taken, now
        self._waited = waiting > BACKLOG_BYTES
        if waited and now - self._moved < STALLED and now < self._ends:
            self._timer = self._loop.call_later(self._seconds, self._look)
        else:
            self._abort()


def taken(connection: Any) -> tuple[int, int | None]:
    """Return how many bytes this system holds for the peer, and how many the peer has confirmed since it connected.

    The first is 0 and the second is None where that cannot be known.
    """
    try:
        return _queued(connection), _confirmed(connection)
    except (OSError, ValueError, AttributeError, ImportError):
        # No socket, one that is closed, or a system that does not tell.
        return 0, None


def _queued(connection: Any) -> int:
    # Windows has neither.
    from fcntl import ioctl
    from termios import TIOCOUTQ

    return int(_int.unpack(ioctl(connection.fileno(), TIOCOUTQ, bytes(_int.size)))[0])


def _confirmed(connection: Any) -> int | None:
    if TCP_INFO is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    info = connection.getsockopt(socket.IPPROTO_TCP, TCP_INFO, INFO_BYTES)
    return int(_uint64.unpack_from(info, BYTES_ACKED)[0]) if len(info) >= INFO_BYTES else None
