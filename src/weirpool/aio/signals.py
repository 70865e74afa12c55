"""Signals that a running event loop handles, for the time of a block."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

__all__ = ["STOPPING", "handled", "stop_signal"]

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
"""The signals that stop a program in order."""


@contextmanager
def handled(call: Callable[[signal.Signals], object], *numbers: signal.Signals) -> Iterator[None]:
    """Call `call` in the running loop at each of these signals within the block; then put their handlers back.

    Blocks with the same signals must not be nested in one loop, which has one handler for each signal.
    """
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in numbers:
            try:
                loop.add_signal_handler(number, call, number)
            except NotImplementedError:
                # The event loops of Windows. Such a handler interrupts Python anywhere, so it only wakes the loop.
                signal.signal(number, lambda number, _: loop.call_soon_threadsafe(call, signal.Signals(number)))
        yield
    finally:
        for number, handler in before.items():
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            # A handler that was not installed by Python has no name there.
            if handler is not None:
                signal.signal(number, handler)


@asynccontextmanager
async def stop_signal() -> AsyncIterator[asyncio.Future[signal.Signals]]:
    """Yield a future of the first SIGINT or SIGTERM. Within the block they do not end the process."""
    arrived: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()

    def stop(number: signal.Signals) -> None:
        if not arrived.done():
            arrived.set_result(number)

    with handled(stop, *STOPPING):
        yield arrived
