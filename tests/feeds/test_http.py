from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from weirpool.errors import ConnectError
from weirpool.feeds.board import STALE_SECONDS, Board
from weirpool.feeds.http import listening
from weirpool.feeds.status import Document, FeedStatus
from weirpool.observe import http as servers
from weirpool.observe.feed_metrics import exposition

SECONDS = 60
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e"


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 2e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(clock: Clock) -> Board:
    board = Board(clock=clock, monotonic=clock)
    board.publish([FeedStatus.refused("a", HOSTILE)])
    return board


@pytest.fixture
def url(board: Board) -> Iterator[str]:
    with listening(board, "127.0.0.1", 0, exposition) as url:
        yield url


def get(url: str, path: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=SECONDS)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def test_status_is_one_document(url: str) -> None:
    response, body = get(url, "/status")
    assert (response.status, response.getheader("Content-Type")) == (200, "application/json")
    document = json.loads(body)
    assert document["states"] == {"refused": 1}
    assert document["feeds"][0]["reason"] == HOSTILE


def test_metrics_are_those_of_prometheus(url: str) -> None:
    response, body = get(url, "/metrics")
    assert response.status == 200
    assert b'weirpool_feed_state{feed="a",state="refused"} 1.0' in body


def test_metrics_need_a_package(board: Board) -> None:
    with listening(board, "127.0.0.1", 0) as url:
        response, body = get(url, "/metrics")
    assert response.status == 501
    assert b"weirpool[metrics]" in body


def test_health_is_that_of_the_loop(url: str, clock: Clock, board: Board) -> None:
    assert [get(url, path)[0].status for path in ("/healthz", "/readyz")] == [200, 200]
    clock.now += STALE_SECONDS
    response, body = get(url, "/healthz")
    assert (response.status, body) == (503, b"an event loop that collects does not answer\n")
    assert get(url, "/readyz")[0].status == 503


def test_page_and_its_files_may_load_nothing_else(url: str) -> None:
    for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")):
        response, body = get(url, path)
        assert (response.status, response.getheader("Content-Type")) == (200, f"{kind}; charset=utf-8")
        assert response.getheader("Content-Security-Policy", "").startswith("default-src 'none'; script-src 'self'")
        assert response.getheader("X-Content-Type-Options") == "nosniff"
        assert b"http://" not in body and b"https://" not in body
        assert b"innerHTML" not in body


def test_other_paths_and_methods_are_refused(url: str) -> None:
    assert get(url, "/../feed.py")[0].status == 404
    assert get(url, "/page/page.html")[0].status == 404
    assert get(url, "/status", "POST")[0].status == 501
    response, body = get(url, "/status", "HEAD")
    assert (response.status, body) == (200, b"")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_site_of_another_name_cannot_read_a_loopback_address(url: str, host: str) -> None:
    assert get(url, "/status", Host=host)[0].status == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:9", "127.0.0.1:7", "[::1]:80"])
def test_this_machine_has_several_names(url: str, host: str) -> None:
    assert get(url, "/status", Host=host)[0].status == 200


def test_address_in_use_is_an_error(board: Board) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with (
            pytest.raises(ConnectError, match="cannot listen on 127"),
            listening(board, "127.0.0.1", other.getsockname()[1]),
        ):
            pass


def test_threads_are_bounded_while_a_disk_hangs(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    monkeypatch.setattr(board, "document", lambda: gate.wait(SECONDS))
    with listening(board, "127.0.0.1", 0) as url, ExitStack() as stack:
        parts = urlsplit(url)
        stack.callback(gate.set)
        before = threading.active_count()
        for _ in range(servers.MAX_THREADS // 2 + 9):
            client = stack.enter_context(socket.create_connection((parts.hostname, parts.port), SECONDS))
            client.sendall(b"GET /status HTTP/1.0\r\nHost: localhost\r\n\r\n")
        # The last ones are refused at once, and no thread is made for them.
        assert client.recv(1) == b""
        assert threading.active_count() - before <= servers.MAX_THREADS // 2


def test_defect_is_answered_and_logged(board: Board, caplog: pytest.LogCaptureFixture) -> None:
    def fail(document: Document) -> bytes:
        raise ZeroDivisionError

    with listening(board, "127.0.0.1", 0, fail) as url:
        assert get(url, "/metrics?" + "x" * 10_000)[0].status == 500
    (record,) = caplog.records
    # A client says what the path is, so little of it is logged.
    assert record.getMessage().startswith("a request for /metrics?xxx")
    assert len(record.getMessage()) < 1_000


def test_what_is_no_host_or_path_is_refused_quietly(url: str, caplog: pytest.LogCaptureFixture) -> None:
    place = urlsplit(url)
    for request, status in (
        (b"GET / HTTP/1.0\r\nHost: [\r\n\r\n", b"403"),
        (b"GET http://[ HTTP/1.0\r\nHost: localhost\r\n\r\n", b"404"),
        (b"GET /status?a=b HTTP/1.0\r\nHost: localhost\r\n\r\n", b"200"),
        (b"OPTIONS / HTTP/1.0\r\nHost: localhost\r\n\r\n", b"501"),
        (b"GET / HTTP/1.0\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"431"),
        (b"GET /" + b"a" * 100_000, b"414"),
    ):
        with socket.create_connection((str(place.hostname), place.port or 0), timeout=SECONDS) as connection:
            connection.sendall(request)
            assert connection.recv(1_000).split(b" ")[1] == status
    assert not caplog.records
