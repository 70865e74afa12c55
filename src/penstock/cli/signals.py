"""The signals that stop a verb in order."""

from __future__ import annotations

import asyncio
import signal

__all__ = ["stop_signal"]


def stop_signal() -> asyncio.Future[signal.Signals]:
    """Return a future of the first SIGINT or SIGTERM from now on. They no longer end the process."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[signal.Signals] = loop.create_future()

    def stop(number: signal.Signals) -> None:
        if not arrived.done():
            arrived.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop, number)
        except NotImplementedError:
            # The event loops of Windows. A handler of its own interrupts Python anywhere, so it only wakes the loop.
            signal.signal(number, lambda number, _: loop.call_soon_threadsafe(stop, signal.Signals(number)))
    return arrived
