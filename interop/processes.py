"""Runs servers and clients as processes with time limits."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .peers import Peer

__all__ = ["ProcessFailed", "Serving", "run_checks", "run_client", "run_tool", "serving"]

START_TIMEOUT = 30.0
"""Seconds within which a server must listen; a JVM starts slowly on a busy machine."""
CLIENT_TIMEOUT = 300.0
"""Time limit for all checks of a client, in seconds."""
END_TIMEOUT = 5.0
"""Seconds between SIGTERM and SIGKILL."""
LISTENING = re.compile(rb"listening .*?(\d+)/?(\?.*)?$", re.IGNORECASE)
NAMES_ERROR = re.compile(r"^Error|\w(Error|Exception)\b")


class ProcessFailed(Exception):
    """A server did not start, or a client ended without its JSON object."""


@dataclass(frozen=True)
class Serving:
    """A running server.

    Args:
        port: Its port on 127.0.0.1.
        errors: The file with its standard error.

    """

    port: int
    errors: IO[str]

    def log(self) -> list[str]:
        """Return the lines that it has written to standard error so far."""
        self.errors.seek(0)
        return self.errors.read().splitlines()


async def _end(process: Process) -> None:
    if process.returncode is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), END_TIMEOUT)
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


@asynccontextmanager
async def _started(command: list[str], folder: Path) -> AsyncIterator[tuple[Process, IO[str]]]:
    """Run `command` while the block lasts. Yield the process and the file with its standard error."""
    with tempfile.TemporaryFile("w+") as errors:
        try:
            process = await asyncio.create_subprocess_exec(
                *command, cwd=folder, stdout=PIPE, stderr=errors, start_new_session=True
            )
        except FileNotFoundError:
            raise ProcessFailed(f"{command[0]} is not on PATH") from None
        try:
            yield process, errors
        finally:
            await _end(process)


def _complaint(errors: IO[str]) -> str:
    """Return the line of standard error that best explains why a process ended."""
    errors.seek(0)
    lines = errors.read().strip().splitlines() or ["no output"]
    return next((line.strip() for line in reversed(lines) if NAMES_ERROR.search(line)), lines[-1])


async def _port_of(process: Process) -> int | None:
    assert process.stdout is not None
    async for line in process.stdout:
        found = LISTENING.match(line)
        if found is not None:
            return int(found[1])
    return None


@asynccontextmanager
async def serving(peer: Peer, transport: str, *options: str) -> AsyncIterator[Serving]:
    """Run a peer's server over `transport`, with `options`, while the block lasts.

    Raises:
        ProcessFailed: It did not print a port in time.

    """
    async with _started([*peer.server, transport, *options], peer.folder) as (process, errors):
        try:
            port = await asyncio.wait_for(_port_of(process), START_TIMEOUT)
        except TimeoutError:
            port = None
        if port is None:
            raise ProcessFailed(f"the server of {peer.title} did not start listening: {_complaint(errors)}")
        yield Serving(port, errors)


async def run_client(peer: Peer, transport: str, port: int, cut_port: int, *options: str) -> dict[str, str]:
    """Run a peer's checks against the server on `port` of 127.0.0.1, with a relay on `cut_port`.

    Returns:
        The result of each check: "ok", or the reason of its failure.

    Raises:
        ProcessFailed: The client ended without results, or exceeded its time limit.

    """
    command = [*peer.client, transport, "127.0.0.1", str(port), str(cut_port), *options]
    return await run_checks(command, peer.folder, f"the client of {peer.title}")


async def run_checks(command: list[str], folder: Path, title: str, seconds: float = CLIENT_TIMEOUT) -> dict[str, str]:
    """Run a program that prints the results of checks, for so many seconds at most; see `run_client`."""
    async with _started(command, folder) as (process, errors):
        try:
            output, _ = await asyncio.wait_for(process.communicate(), seconds)
        except TimeoutError:
            raise ProcessFailed(f"{title} did not finish within {seconds:.0f} s: {_complaint(errors)}") from None
        for line in reversed(output.decode().splitlines()):
            if line.startswith('{"peer"'):
                return dict(json.loads(line)["checks"])
        raise ProcessFailed(f"{title} ended without results: {_complaint(errors)}")


async def run_tool(command: list[str], folder: Path, seconds: float) -> None:
    """Run a program that must succeed.

    Raises:
        ProcessFailed: It failed; the error has the start of its output. Or it exceeded its time limit.

    """
    async with _started(command, folder) as (process, errors):
        try:
            output, _ = await asyncio.wait_for(process.communicate(), seconds)
        except TimeoutError:
            raise ProcessFailed(f"{command[0]} did not finish within {seconds:.0f} s: {_complaint(errors)}") from None
        if process.returncode != 0:
            said = output.decode(errors="replace").strip().splitlines()
            raise ProcessFailed(f"{' '.join(command)} failed: {said[0] if said else _complaint(errors)}")
