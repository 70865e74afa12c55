"""A minimal server of S3's protocol, which holds conditions or ignores them, and fails when it is told to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit

__all__ = ["Bucket"]


class Bucket:
    """A bucket in memory.

    Attributes:
        conditional: Whether it holds the condition If-None-Match.
        fail: Returns the status with which a request fails, given its method, how many of this method came before, and
            whether it was executed; None: it does not fail.
        objects: What is in it.

    """

    def __init__(self, *, conditional: bool = True) -> None:
        self.conditional = conditional
        self.objects: dict[str, bytes] = {}
        self.fail: Callable[[str, int, bool], int | None] = lambda method, before, executed: None
        self.requests: list[str] = []
        self.links: list[socket] = []
        self.uri = ""
        self._lock = Lock()

    @contextmanager
    def served(self) -> Iterator[Bucket]:
        """Serve it while a block lasts."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"bucket": self}))
        # So that `server_close` waits for them.
        server.daemon_threads = False
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.uri = f"s3://b/g?endpoint=http://127.0.0.1:{server.server_address[1]}&region=eu-central-1"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            # The client keeps its connections.
            for link in self.links:
                with suppress(OSError):
                    link.shutdown(SHUT_RDWR)
            server.server_close()

    def put(self, name: str, data: bytes, once: bool) -> int:
        """Write an object, and return the status."""
        with self._lock:
            if once and self.conditional and name in self.objects:
                return 412
            self.objects[name] = data
            return 200


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def setup(self) -> None:
        super().setup()
        self.bucket.links.append(self.connection)

    def log_message(self, *arguments: object) -> None:
        pass

    def _answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path.split("/", 2)[-1])

    def _fails(self, *, executed: bool) -> bool:
        before = self.bucket.requests.count(self.command)
        code = self.bucket.fail(self.command, before, executed)
        if code is None and not executed:
            return False
        self.bucket.requests.append(self.command)
        if code is not None:
            self._answer(code, b"<Error><Code>SlowDown</Code></Error>")
        return code is not None

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._fails(executed=False):
            code = self.bucket.put(self._key(), data, self.headers.get("If-None-Match") == "*")
            if not self._fails(executed=True):
                self._answer(code, ETag=_etag(data))

    def do_DELETE(self) -> None:
        if not self._fails(executed=False):
            self.bucket.objects.pop(self._key(), None)
            if not self._fails(executed=True):
                self._answer(204)

    def do_GET(self) -> None:
        if self._fails(executed=False) or self._fails(executed=True):
            return
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            self._list(query.get("prefix", [""])[0], query.get("start-after", [""])[0])
            return
        data = self.bucket.objects.get(self._key())
        if data is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        extra = {"ETag": _etag(data), "Last_Modified": formatdate(usegmt=True)}
        wanted = self.headers.get("Range")
        if not wanted or self.command == "HEAD":
            self._answer(200, data, **extra)
            return
        start, _, stop = wanted.partition("=")[2].partition("-")
        first, last = int(start), min(int(stop or len(data)), len(data) - 1)
        if first >= len(data):
            self._answer(416)
        else:
            self._answer(206, data[first : last + 1], Content_Range=f"bytes {first}-{last}/{len(data)}", **extra)

    do_HEAD = do_GET

    def _list(self, prefix: str, after: str) -> None:
        rows = "".join(
            f"<Contents><Key>{name}</Key><Size>{len(data)}</Size>"
            '<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"x"</ETag></Contents>'
            for name, data in sorted(self.bucket.objects.items())
            if name.startswith(prefix) and name > after
        )
        text = f"<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
        self._answer(200, text.encode(), Content_Type="application/xml")


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'
