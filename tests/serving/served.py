"""A collector that serves a journal, on a thread of its own: Spark's side is synchronous."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import weirpool
from weirpool import Service, Settings
from weirpool.serving import serve_journal
from weirpool.serving.service import Authorize, read_and_commit

SETTINGS = Settings(close_grace=0.02)


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something is true that the collector's thread brings about."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.005)


class Served:
    """A server on a thread."""

    def __init__(self, service: Service, url: str, **options: Any) -> None:
        self.url = url
        self._service = service
        self._options = options
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with weirpool.serve(self._service, self.url, **{"settings": SETTINGS, **self._options}) as self.server:
            self.url = self.server.urls[0]
            self._ready.set()
            await self._stop.wait()

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        assert self._ready.wait(10)

    def cut(self) -> None:
        """Break all connections, as a network does; they are broken on return."""
        done = threading.Event()
        self.call(self._cut, done)
        assert done.wait(10)

    def _cut(self, done: threading.Event) -> None:
        self.abort()
        done.set()

    def abort(self) -> None:
        """Do the same on the server's loop."""
        for driver in list(self.server._drivers.values()):
            if driver.flow.link is not None:
                driver.flow.link.abort()

    def call(self, action: Callable[..., object], *arguments: object) -> None:
        """Call something on the server's loop."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(action, *arguments)

    def stop(self) -> None:
        """Close the server."""
        assert self._loop is not None and self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)


@contextmanager
def serving(
    path: Path,
    url: str = "rsocket+tcp://127.0.0.1:0",
    *,
    authorize: Authorize = read_and_commit,
    more: Callable[[Service], None] = lambda _: None,
    **options: Any,
) -> Iterator[Served]:
    """Serve a journal."""
    service = Service()
    serve_journal(service, path, authorize=authorize)
    more(service)
    served = Served(service, url, **options)
    served.start()
    try:
        yield served
    finally:
        served.stop()


@contextmanager
def served_by(service: Service, url: str = "rsocket+tcp://127.0.0.1:0", **options: Any) -> Iterator[str]:
    """Run a server; yield its URL."""
    served = Served(service, url, **options)
    served.start()
    try:
        yield served.url
    finally:
        served.stop()
