"""Reads items from lines: of an argument, a file, or standard input as they arrive."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from typer import Option

from ..errors import LocalError
from ..payload import Payload
from ..strict_json import strict_json
from .values import duration, read_bytes

__all__ = ["ItemOptions", "lines_of", "paced", "payload_of"]

READ_BYTES: Final = 64 * 1024

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ItemOptions:
    """How items to send are read, and the pause between them."""

    json_items: Annotated[
        bool, Option("--json-items", help="Each line is an object as printed by --json, and may have metadata.")
    ] = False
    delay: Annotated[
        float, Option("--delay", metavar="SECONDS", parser=duration(), help="Pause between sent items, in seconds.")
    ] = 0

    def source(self, value: str) -> Iterable[bytes] | AsyncIterable[bytes | Payload]:
        """Return the items of an argument."""
        lines = lines_of(value)
        if not (self.json_items or self.delay):
            return lines
        return self._items(lines)

    async def _items(self, lines: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[bytes | Payload]:
        async for line in paced(lines, self.delay):
            yield payload_of(line) if self.json_items else line


def payload_of(line: bytes) -> Payload:
    """Return an item from a line of JSON as printed by --json."""
    try:
        fields = strict_json(line)
    except ValueError as error:
        raise LocalError(f"an item is not valid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise LocalError(f"an item is a JSON {type(fields).__name__}; it must be an object as printed by --json")
    return Payload(_decoded(fields, "data") or b"", _decoded(fields, "metadata"))


def _decoded(fields: dict[str, Any], name: str) -> bytes | None:
    text, digits = fields.get(name), fields.get(f"{name}_hex")
    try:
        if isinstance(text, str):
            return text.encode()
        if text is None:
            return None if digits is None else bytes.fromhex(digits)
    except (TypeError, ValueError):
        pass
    raise LocalError(f"an item's {name} must be a string, or null with hex digits in {name}_hex")


def lines_of(value: str) -> list[bytes] | AsyncIterator[bytes]:
    """Return the lines of an argument. Lines of standard input are read as they arrive."""
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
    """Wait until `descriptor` is readable, and read from it."""
    # A thread that waits for input could not be stopped. The descriptor stays blocking, because on a terminal the
    # shell and our own output share it.
    if _may_block(descriptor):
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(descriptor, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(descriptor)
    return os.read(descriptor, READ_BYTES)


def _may_block(descriptor: int) -> bool:
    """Return True if reading may block. Files never block, and the event loop cannot watch them."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


async def paced(items: Iterable[T] | AsyncIterable[T], seconds: float) -> AsyncIterator[T]:
    """Yield `items`, with a pause before each except the first."""
    first = True
    async for item in _each(items):
        if not first and seconds:
            await asyncio.sleep(seconds)
        first = False
        yield item


async def _each(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
