"""Tells systemd what the process does: sd_notify(3)."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress

__all__ = ["notify"]


def notify(state: str) -> None:
    """Send a state to the service manager, such as ``READY=1``; do nothing without one, or if it does not answer."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    if state == "RELOADING=1":
        # Type=notify-reload requires the time.
        state += f"\nMONOTONIC_USEC={time.monotonic_ns() // 1_000}"
    address = f"\0{path[1:]}" if path.startswith("@") else path
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        # A full queue must not hold the event loop up.
        sender.setblocking(False)
        sender.sendto(state.encode(), address)
