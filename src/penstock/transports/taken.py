"""What the other end's system has taken of what a socket sends, as far as this system knows."""

from __future__ import annotations

import socket
import struct
from typing import Any, Final

__all__ = ["taken"]

TCP_INFO: Final[int | None] = getattr(socket, "TCP_INFO", None)
BYTES_ACKED: Final = 120
"""Where Linux has it in its `struct tcp_info`: 64 bits, since Linux 4.1."""
INFO_BYTES: Final = 128
_uint64 = struct.Struct("=Q")
_int = struct.Struct("=i")


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
