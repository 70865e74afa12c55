"""Nodes that are replaced by other processes, and the load on them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import weirpool
from tests.rolling.server import ITEMS
from tests.transports.certificates import Certificates

__all__ = ["ENCRYPTED", "HOW", "Load", "Node", "url_of"]

ROOT = Path(__file__).parent.parent.parent
ENCRYPTED: Final = frozenset({"tls", "wss", "h2", "quic"})
HOW: Final = ("rebound", "inherited", "handed over")
"""Who has the listening socket while a server is replaced: nobody, a parent that passes it on, or both servers."""
CALLERS = 20
STREAMS = 5
PATIENCE = 30.0
"""Seconds for a process that has said its last word to end."""
PER_STEP = 100
"""Calls that are answered between two steps of a restart."""
CALM = 0.02
"""Seconds between the requests of one caller while a process starts, which a full load would only delay."""


def url_of(protocol: str, transport: str, folder: Path) -> tuple[str, str]:
    """Return the URL of a server, and the options of its clients' URL; certificates are written to `folder`."""
    if transport == "unix":
        return f"{protocol}+unix://{folder}/s", ""
    url = f"{protocol}+{transport}://localhost:0"
    if transport not in ENCRYPTED:
        return url, ""
    made = Certificates(folder)
    return f"{url}?{made.server_options}", f"?{made.client_options}"


class Node:
    """The successive servers at one address.

    Args:
        url: The URL of the first one.
        how: One of `HOW`.

    Attributes:
        started: Requests that handlers of all of them have started.
        starting: A process starts, and none is closing.

    """

    def __init__(self, url: str, how: str) -> None:
        self.url = url
        self.starting = False
        self.started: Counter[str] = Counter()
        self._how = how
        self._process: Any = None
        self._lines: Any = None
        self._pipe: Any = None
        self._pid = 0
        self._socket: socket.socket | None = None

    async def start(self) -> None:
        """Start a server, and wait until it listens."""
        self.starting = True
        url, descriptors = self.url, []
        if self._how == "inherited":
            if self._socket is None:
                self._socket = self._bound()
            descriptors = [self._socket.fileno()]
            url += f"{'&' if '?' in url else '?'}fd={descriptors[0]}"
        command = (sys.executable, "-m", "tests.rolling.server", url)
        # Not asyncio's: it waits for a process until its successor has closed the pipe, too.
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=pipe, pass_fds=descriptors)  # noqa: ASYNC220
        self._lines = asyncio.StreamReader()
        if self._pipe is not None:
            self._pipe.close()
        self._pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._lines), self._process.stdout
        )
        await self._listens()

    def _bound(self) -> socket.socket:
        if "+unix" not in self.url:
            return socket.create_server(("127.0.0.1", 0))
        found = socket.socket(socket.AF_UNIX)
        found.bind(self.url.partition("://")[2])
        found.listen()
        return found

    async def _listens(self) -> None:
        facts = await self._told()
        self.starting = False
        self._pid = facts["pid"]
        if self._how != "inherited":
            [self.url] = facts["urls"]
        elif "+unix" not in self.url:
            assert self._socket is not None
            self.url = self.url.replace(":0", f":{self._socket.getsockname()[1]}", 1)

    async def _told(self) -> dict[str, Any]:
        line = await self._lines.readline()
        assert line, f"a server at {self.url} ended without a word"
        facts: dict[str, Any] = json.loads(line)
        return facts

    async def stop(self) -> None:
        """Close the server, and wait until it has ended."""
        os.kill(self._pid, signal.SIGTERM)
        facts = await self._told()
        self._pid = 0
        self.started.update(facts["started"])
        # Its clients have left.
        self.starting = self._how != "handed over"
        if facts["pid"] == self._process.pid:
            assert await asyncio.to_thread(self._process.wait, PATIENCE) == 0

    async def replace(self) -> None:
        """Let another server take the place of this one."""
        if self._how != "handed over":
            await self.stop()
            await self.start()
            return
        old = self._pid
        self.starting = True
        os.kill(old, signal.SIGUSR2)
        await self._listens()
        new, self._pid = self._pid, old
        await self.stop()
        self._pid = new

    def kill(self) -> None:
        """End what is left of a test, also of one that has failed."""
        for each in (self._socket, self._pipe):
            if each is not None:
                each.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)


class Load:
    """Callers and streams, and what they have seen. They pause a little only while one of `nodes` starts.

    Attributes:
        answered: Calls and streams that were answered completely.
        failures: Errors of calls and streams.

    """

    def __init__(self, peer: weirpool.Peer | weirpool.Balancer, *nodes: Node) -> None:
        self.answered: Counter[str] = Counter()
        self.failures: list[str] = []
        self._peer = peer
        self._nodes = nodes
        self._over = False
        self._progress = asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._ask()) for _ in range(CALLERS)]
        self._tasks += [asyncio.ensure_future(self._stream()) for _ in range(STREAMS)]

    async def _ask(self) -> None:
        while not self._over:
            try:
                await self._peer.call("one.call", b"0")
                self.answered["call"] += 1
                await self._rest()
            except weirpool.WeirpoolError as error:
                self.failures.append(f"call: {error!r}")
                break
            finally:
                self._progress.set()

    async def _stream(self) -> None:
        while not self._over:
            try:
                assert len([item async for item in self._peer.stream("one.stream", b"0")]) == ITEMS
                self.answered["stream"] += 1
                await self._rest()
            except weirpool.WeirpoolError as error:
                self.failures.append(f"stream: {error!r}")
                break

    async def _rest(self) -> None:
        if any(node.starting for node in self._nodes):
            await asyncio.sleep(CALM)

    async def more(self) -> None:
        """Wait until more calls were answered."""
        wanted = self.answered["call"] + PER_STEP
        while self.answered["call"] < wanted and not self.failures:
            self._progress.clear()
            await self._progress.wait()

    async def end(self) -> None:
        """Wait for the last answers."""
        self._over = True
        await asyncio.gather(*self._tasks)
