from __future__ import annotations

import socket
import sys

import pytest

from weirpool.transports.lingering import tcp_progress

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a peer has confirmed")
LARGE = b"x" * 20_000_000


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        left = socket.create_connection(listening.getsockname())
        right, _ = listening.accept()
    left.setblocking(False)
    return left, right


@LINUX
def test_tcp_progress_counts_acknowledged_bytes() -> None:
    left, right = tcp_pair()
    with left, right:
        assert tcp_progress(left) == (0, 1)  # Its connection request counts as one.
        sent = left.send(LARGE)
        held, confirmed = tcp_progress(left)
        # The peer's system takes what fits into its buffer, and this one holds the rest.
        assert confirmed is not None and 0 < held < sent and confirmed < sent
        received = 0
        while received < sent:
            received += len(right.recv(1_000_000))
        while left.send(b"") == 0 and tcp_progress(left)[0]:
            # What has been read is acknowledged in a moment.
            pass
        assert tcp_progress(left) == (0, sent + 1)


@LINUX
def test_unix_sockets_report_their_send_queue() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.send(b"x" * 10_000)
        held, confirmed = tcp_progress(left)
        assert held >= 10_000 and confirmed is None


def test_progress_without_socket_is_unknown() -> None:
    left, right = tcp_pair()
    left.close()
    right.close()
    assert tcp_progress(left) == tcp_progress(None) == (0, None)
