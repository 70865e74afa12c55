"""A server that idle and slow clients cannot keep busy."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from weirpool.observe import http
from weirpool.observe.http import MAX_REQUESTS, MAX_THREADS, BoundedServer

SECONDS = 20.0


class Handler(BaseHTTPRequestHandler):
    gate: threading.Event | None = None

    def do_GET(self) -> None:
        if self.gate is not None and self.path == "/slow":
            assert self.gate.wait(SECONDS)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(handler: type[Handler] = Handler) -> Iterator[tuple[str, int]]:
    server = BoundedServer("127.0.0.1", 0, handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield "127.0.0.1", server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def connect(stack: ExitStack, place: tuple[str, int], source: str = "127.0.0.1") -> socket.socket:
    return stack.enter_context(socket.create_connection(place, SECONDS, (source, 0)))


def answer(client: socket.socket, path: str = "/") -> bytes:
    client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    return client.recv(1_000)[:12]


def test_idle_clients_do_not_keep_a_probe_out() -> None:
    with serving() as place, ExitStack() as stack:
        clients = [connect(stack, place) for _ in range(3 * MAX_REQUESTS)]
        assert answer(connect(stack, place)) == b"HTTP/1.0 200"
        # The oldest ones had to go.
        assert {client.recv(1) for client in clients[: 2 * MAX_REQUESTS]} == {b""}


def test_the_client_with_most_connections_loses_one() -> None:
    # THREATS 111
    with serving() as place, ExitStack() as stack:
        honest = connect(stack, place, "127.0.0.2")
        greedy = [connect(stack, place) for _ in range(3 * MAX_REQUESTS)]
        assert greedy[0].recv(1) == b""
        assert answer(honest) == b"HTTP/1.0 200"


def test_one_client_does_not_take_all_threads() -> None:
    # THREATS 111
    gate = threading.Event()
    waiting = type("Waiting", (Handler,), {"gate": gate})
    with serving(waiting) as place, ExitStack() as stack:
        stack.callback(gate.set)
        before = threading.active_count()
        greedy = [connect(stack, place) for _ in range(MAX_THREADS)]
        for client in greedy[:-1]:
            client.sendall(b"GET /slow HTTP/1.0\r\n\r\n")
        # No thread is made for the last ones.
        assert greedy[-1].recv(1) == b""
        assert threading.active_count() - before <= MAX_THREADS // 2
        assert answer(connect(stack, place, "127.0.0.2")) == b"HTTP/1.0 200"


def test_a_client_that_sends_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_SECONDS", 0.05)
    with serving() as place, ExitStack() as stack:
        client = connect(stack, place)
        client.sendall(b"GET / HT")
        assert client.recv(1) == b""
