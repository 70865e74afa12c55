"""Connections of trusted proxies, whose clients are named by a PROXY header before anything else."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import Final

from ..errors import LinkLost, WeirpoolError
from ..networks import networks
from ..settings import Settings
from .base import Accept, Refused
from .places import Places
from .proxy_header import ProxyHeader

__all__ = ["ProxiedConnections"]

logger = logging.getLogger("weirpool.transports")

READ_BYTES: Final = 4_096


class ProxiedConnections:
    """Reads the headers of connections from trusted proxies, then passes each connection on.

    Args:
        settings: The source of `proxy_protocol`, `trusted_proxies`, `connect_timeout` and `max_connections`.
        admit: Called with each connection and the address of its client.
        accept: Called to report a connection that is refused; see :data:`weirpool.transports.base.Accept`.

    """

    def __init__(self, settings: Settings, admit: Callable[[socket.socket, str], None], accept: Accept) -> None:
        self._settings = settings
        self._proxies = networks(settings.trusted_proxies)
        self._admit = admit
        self._accept = accept
        self._reading: set[asyncio.Task[None]] = set()
        self._places = Places[asyncio.Task[None]](settings.max_connections, asyncio.Task.cancel)

    def take(self, connection: socket.socket, address: str) -> bool:
        """Take a connection from `address`, and return True; return False if it has no header."""
        if not self._settings.proxy_protocol or address not in self._proxies:
            return False
        loop = asyncio.get_running_loop()
        if self._places.make_room(loop.time()):
            task = loop.create_task(self._introduce(connection, address))
            self._reading.add(task)
            self._places.take(task, loop.time())
            task.add_done_callback(partial(self._introduced, connection))
        else:
            connection.close()
        return True

    async def close(self) -> None:
        """Close the connections whose headers are incomplete."""
        tasks = list(self._reading)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _introduce(self, connection: socket.socket, address: str) -> None:
        """Read the header of a connection, and pass the connection on or close it."""
        timeout = self._settings.connect_timeout
        try:
            async with asyncio.timeout(timeout):
                client = await _read_header(connection)
        except TimeoutError:
            self._refuse(connection, address, LinkLost(f"no complete PROXY header within {timeout:g} s"))
        except (WeirpoolError, OSError) as error:
            self._refuse(connection, address, error)
        else:
            self._admit(connection, client or address)

    def _introduced(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        """Close a connection whose task was canceled, maybe before its first step."""
        self._reading.discard(task)
        self._places.leave(task)
        if task.cancelled():
            connection.close()

    def _refuse(self, connection: socket.socket, address: str, error: Exception) -> None:
        connection.close()
        logger.warning("the proxy %s was refused: %s", address or "on a Unix socket", error)
        receiver = self._accept(address, None)
        if not isinstance(receiver, Refused):
            receiver.link_lost(error)


async def _read_header(connection: socket.socket) -> str:
    """Return the client's address in the header that `connection` begins with, and read nothing after it."""
    loop = asyncio.get_running_loop()
    header = ProxyHeader()
    while header.wants:
        data = await loop.sock_recv(connection, min(header.wants, READ_BYTES))
        if not data:
            raise LinkLost("the connection ended before its PROXY header was complete")
        header.feed(data)
    return header.address
