"""Waits without a clock, by turns of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["turns", "until"]


async def until(condition: Callable[[], bool]) -> None:
    """Run other tasks until `condition` is true. A test that waits too long is canceled."""
    while not condition():
        await turns(1)


async def turns(count: int) -> None:
    """Run other tasks for `count` turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)
