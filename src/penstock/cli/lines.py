"""Items that are given as lines: in an argument, a file, or on standard input as they come."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from ..errors import LocalError
from ..payload import Payload
from .arguments import read_bytes
from .pace import paced

__all__ = ["ItemOptions", "lines_of", "payload_of"]

READ_BYTES: Final = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class ItemOptions:
    """How the items that are sent are read, and how fast they go."""

    json_items: Annotated[
        bool, typer.Option("--json-items", help="Each line is an object as --json prints it, with metadata, too.")
    ] = False
    delay: Annotated[
        float, typer.Option("--delay", metavar="SECONDS", min=0, help="Wait so long between items that are sent.")
    ] = 0

    def source(self, value: str) -> Iterable[bytes] | AsyncIterable[bytes | Payload]:
        """Return the items that an argument stands for.

        Raises:
            LocalError: The file cannot be read. While the items are read: a line is no such object.

        """
        lines = lines_of(value)
        if not (self.json_items or self.delay):
            return lines
        return self._items(lines)

    async def _items(self, lines: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[bytes | Payload]:
        async for line in paced(lines, self.delay):
            yield payload_of(line) if self.json_items else line


def payload_of(line: bytes) -> Payload:
    """Return the item that a line of JSON describes, as --json prints it.

    Raises:
        LocalError: It describes none.

    """
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise LocalError(f"an item is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise LocalError(f"an item is {type(fields).__name__} in JSON; it must be an object as --json prints it")
    return Payload(_octets(fields, "data") or b"", _octets(fields, "metadata"))


def _octets(fields: dict[str, Any], name: str) -> bytes | None:
    text, digits = fields.get(name), fields.get(f"{name}_hex")
    try:
        if isinstance(text, str):
            return text.encode()
        if text is None:
            return None if digits is None else bytes.fromhex(digits)
    except (TypeError, ValueError):
        pass
    raise LocalError(f"an item's {name} must be a string, or null with hex digits under {name}_hex")


def lines_of(value: str) -> list[bytes] | AsyncIterator[bytes]:
    """Return the lines that an argument stands for; those of standard input are read while others travel.

    Raises:
        LocalError: The file cannot be read.

    """
    return _standard_input() if value == "-" else read_bytes(value).splitlines()


async def _standard_input() -> AsyncIterator[bytes]:
    rest = b""
    while chunk := await _read(sys.stdin.fileno()):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest


async def _read(descriptor: int) -> bytes:
    """Return what can be read, once there is something.

    No thread reads: one that waits for a line which nobody types could not be stopped. And the descriptor stays
    blocking: on a terminal the shell and our own output share it.
    """
    if _waits(descriptor):
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(descriptor, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(descriptor)
    return os.read(descriptor, READ_BYTES)


def _waits(descriptor: int) -> bool:
    """Return whether reading may wait for somebody; files never do, and the event loop refuses to watch them."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
