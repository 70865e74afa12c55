"""Runs coroutines on uvloop if it is installed, otherwise on asyncio's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["run"]

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` like :func:`asyncio.run`, on uvloop if it is installed, which is 10 to 40 % faster.

    Returns:
        The result of `main`.

    """
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
