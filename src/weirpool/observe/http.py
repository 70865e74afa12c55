"""An HTTP server for pages and metrics that idle and slow clients cannot keep busy. It runs in threads of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, SHUT_RDWR
from typing import Any, Final

from ..aio.shares import Shares

__all__ = ["BoundedServer"]

MAX_REQUESTS: Final = 16
"""Connections that are kept. Beyond it, the client that has most of them loses its oldest one: idle clients must not
keep a probe out."""
MAX_THREADS: Final = 64
"""Threads that answer: clients have shares. Those that wait for a disk cannot be ended."""
REQUEST_SECONDS: Final = 10.0
"""How long a client may send nothing of its request, or read nothing of the answer."""


class BoundedServer(ThreadingHTTPServer):
    """A server with a limited number of connections and threads.

    Args:
        host: The address to listen on.
        port: The port; 0 lets the system choose one.
        handler: Answers the request of a connection.

    """

    daemon_threads = True
    # A request in flight must not hold up the end of the process.
    block_on_close = False
    request_queue_size = MAX_REQUESTS

    def __init__(self, host: str, port: int, handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        self._lock = threading.Lock()
        # The addresses of connections, in the order of their arrival.
        self._connections: dict[Any, str] = {}
        self._answering = Shares("threads", MAX_THREADS)
        if ":" in host:
            self.address_family = AF_INET6
        super().__init__((host, port), handler)

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection."""
        request, address = super().get_request()
        request.settimeout(REQUEST_SECONDS)
        return request, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a request in a thread; if there is no place left, close another connection first."""
        address = client_address[0]
        with self._lock:
            if not self._answering.take(address):
                self.shutdown_request(request)
                return
            if len(self._connections) >= MAX_REQUESTS:
                crowded = self._crowded()
                del self._connections[crowded]
                with suppress(OSError):
                    # Its thread reads the end, and closes it.
                    crowded.shutdown(SHUT_RDWR)
            self._connections[request] = address
        super().process_request(request, client_address)

    def _crowded(self) -> Any:
        """Return the oldest connection of the address that has most of them."""
        addresses = list(self._connections.values())
        most = max(addresses, key=addresses.count)
        return next(each for each, address in self._connections.items() if address == most)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a request, and give its place up."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._connections.pop(request, None)
                self._answering.give_back(client_address[0])

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that went away while they were answered."""
