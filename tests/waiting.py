"""Waiting without a clock: for what others do in their turns of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["turns", "until"]


async def until(condition: Callable[[], bool]) -> None:
    """Let everybody else go on until `condition` holds; a test that waits in vain is ended."""
    while not condition():
        await turns(1)


async def turns(count: int) -> None:
    """Let everybody else have so many turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)
