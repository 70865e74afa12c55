"""Starts a process to flood, and checks what it says of its memory."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import Settings
from penstock.urls import fitting
from tests.builds import Build

ROOT = Path(__file__).parent.parent.parent
MIB = 1 << 20

LIMITS = {
    "max_stream_bytes": 4 * MIB,
    "max_connection_bytes": 16 * MIB,
    "max_identity_bytes": 24 * MIB,
    "max_process_bytes": 32 * MIB,
}
"""The limits of a process that is flooded: small, so that a flood is short."""
BESIDES = 16 * MIB
"""Memory of a flooded process in addition to its limit: reads and writes in progress, copies of an item of 1 MiB, and
what the allocator keeps."""
QUIET = {"heartbeats_until_dead": 30, "keepalive_interval": 20.0}
"""A machine that is busy must not look like a lost connection."""


def quiet(url: str, *, serving: bool = False, **settings: Any) -> Settings:
    """Return settings for `url`, with `QUIET` as far as it concerns its protocol."""
    return fitting(Settings(**QUIET, **settings), url, serving=serving)


@dataclass
class Victim:
    """A process that is flooded."""

    url: str
    process: asyncio.subprocess.Process

    async def report(self) -> dict[str, int]:
        """Return what it says of its memory."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        return await answer(self.process)


async def answer(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = await process.stdout.readline()
    assert line, "the flooded process has ended"
    return json.loads(line)  # type: ignore[no-any-return]


@asynccontextmanager
async def victim(build: Build, role: str, url: str, **settings: Any) -> AsyncIterator[Victim]:
    """Start a process that is flooded within the block.

    Args:
        build: The build that it uses.
        role: "server", or "client", which consumes the stream `flood.items` of the server at `url`.
        url: Where to listen, or where to connect.
        settings: Changes to the limits.

    """
    environment = {**os.environ, "PENSTOCK_PURE": "1" if build.name == "plain" else ""}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    # Large items are allocated separately, so that the memory of those that are released is returned.
    environment["MALLOC_MMAP_THRESHOLD_"] = "65536"
    setup = {"role": role, "url": url, "settings": {**LIMITS, **QUIET, **settings}}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.floods.victim",
        json.dumps(setup),
        cwd=ROOT,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        started = await answer(process)
        said = await answer(process)
        assert said["accelerated"] == (build.name == "compiled")
        yield Victim(started["url"], process)
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
