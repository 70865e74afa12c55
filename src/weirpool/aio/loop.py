"""Runs coroutines on uvloop if it is installed, otherwise on asyncio's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..errors import LocalError

__all__ = ["new_event_loop", "run"]

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` like :func:`asyncio.run`, on uvloop if it is installed, which is 10 to 40 % faster.

    Returns:
        The result of `main`.

    Raises:
        LocalError: An event loop is running in this thread, as in a notebook.

    """
    if asyncio._get_running_loop() is not None:
        main.close()
        raise LocalError(
            "weirpool.run() starts an event loop, but one is running in this thread already, as in a notebook; use "
            "`await`, such as `peer = await weirpool.connect(url)`, or the blocking API, weirpool.sync"
        )
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop of uvloop if it is installed, otherwise one of asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
