"""Iterates with a pause between items."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TypeVar

__all__ = ["paced"]

T = TypeVar("T")


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
