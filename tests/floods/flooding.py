"""Starts a process to flood, and checks what it says of its memory."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from weirpool import Settings
from weirpool.urls import fitting

ROOT = Path(__file__).parent.parent.parent
MIB = 1 << 20

LIMITS = {
    "max_stream_bytes": 2 * MIB,
    "max_connection_bytes": 8 * MIB,
    "max_identity_bytes": 12 * MIB,
    "max_process_bytes": 16 * MIB,
}
"""The limits of a process that is flooded: small, so that a flood is short."""
BESIDES = 8 * MIB
"""Memory of a flooded process in addition to its limit: reads and writes in progress, copies of an item of 1 MiB, and
what the allocator keeps."""
QUIET = {"heartbeats_until_dead": 30, "keepalive_interval": 20.0}
"""A machine that is busy must not look like a lost connection."""


def quiet(url: str, *, serving: bool = False, **settings: Any) -> Settings:
    """Return settings for `url`, with `QUIET` as far as it concerns its protocol."""
    return fitting(Settings(**QUIET, **settings), url, serving=serving)


class Victim:
    """A process that is flooded.

    Attributes:
        url: Where it listens, or is connected to.

    """

    def __init__(self, pid: int, requests: int, answers: asyncio.StreamReader) -> None:
        self.url = ""
        self.pid = pid
        self._requests = requests
        self._answers = answers

    async def report(self) -> dict[str, int]:
        """Return what it says of its memory."""
        os.write(self._requests, b"\n")
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        """Return its next answer."""
        line = await self._answers.readline()
        assert line, "the flooded process has ended"
        return json.loads(line)  # type: ignore[no-any-return]

    async def ended(self) -> None:
        """Let it end, and wait for that."""
        os.close(self._requests)
        self._requests = -1
        assert not await self._answers.read()

    def kill(self) -> None:
        """End it now."""
        if self._requests >= 0:
            os.close(self._requests)
        if not self._answers.at_eof():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Template:
    """A process of one build, which forks those that are flooded."""

    def __init__(self, build: str) -> None:
        environment = {**os.environ, "WEIRPOOL_PURE": "1" if build == "plain" else ""}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        # Large items are allocated separately, so that the memory of those that are released is returned.
        environment["MALLOC_MMAP_THRESHOLD_"] = "65536"
        self._socket, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.floods.victim"]
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=theirs)
        theirs.close()

    def fork(self, setup: dict[str, Any]) -> tuple[int, int, int]:
        """Return the id of a new process, where to write its input, and where to read its output."""
        reads, requests = os.pipe()
        answers, writes = os.pipe()
        socket.send_fds(self._socket, [json.dumps(setup).encode()], [reads, writes])
        os.close(reads)
        os.close(writes)
        return int(self._socket.recv(64)), requests, answers

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait()


_templates: dict[str, Template] = {}


def template(build: str) -> Template:
    """Return the process of a build, which lives until the end of the tests."""
    found = _templates.get(build)
    if found is None:
        found = _templates[build] = Template(build)
        atexit.register(found.close)
    return found


@asynccontextmanager
async def victim(build: str, role: str, url: str, **settings: Any) -> AsyncIterator[Victim]:
    """Start a process that is flooded within the block.

    Args:
        build: The build that it uses: "compiled" or "plain".
        role: "server", or "client", which consumes the stream `flood.items` of the server at `url`.
        url: Where to listen, or where to connect.
        settings: Changes to the limits.

    """
    setup = {"role": role, "url": url, "settings": {**LIMITS, **QUIET, **settings}}
    pid, requests, answers = template(build).fork(setup)
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answers, "rb", 0)
    )
    flooded = Victim(pid, requests, reader)
    try:
        flooded.url = (await flooded.answer())["url"]
        said = await flooded.answer()
        assert said["accelerated"] == (build == "compiled")
        yield flooded
        await flooded.ended()
    finally:
        flooded.kill()
        transport.close()
