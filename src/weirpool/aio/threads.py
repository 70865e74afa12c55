"""Functions that wait for the disk, called from coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

__all__ = ["ended", "in_thread"]

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function in a thread. If this is canceled, it ends after the function, which cannot be stopped."""
    return await ended(asyncio.ensure_future(asyncio.to_thread(function, *arguments, **named)))


async def ended(work: asyncio.Future[T]) -> T:
    """Wait for work in a thread. If this is canceled, it ends after the work."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        raise
