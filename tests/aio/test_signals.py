from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.waiting import until
from weirpool.aio.loop import new_event_loop
from weirpool.aio.signals import STOPPING, handled, stop_signal

LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_event_loop])
Loop = Callable[[], asyncio.AbstractEventLoop]


def run(loop: Loop, main: Any) -> Any:
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main)


class WindowsLoop(asyncio.SelectorEventLoop):
    """A loop without handlers of signals."""

    def add_signal_handler(self, sig: int, callback: Callable[..., Any], *args: Any) -> None:
        raise NotImplementedError

    def remove_signal_handler(self, sig: int) -> bool:
        raise NotImplementedError


@pytest.mark.parametrize("number", STOPPING)
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_event_loop, WindowsLoop])
def test_first_signal_is_the_one_that_counts(loop: Loop, number: signal.Signals) -> None:
    async def main() -> signal.Signals:
        async with stop_signal() as arrived:
            os.kill(os.getpid(), number)
            found = await arrived
            os.kill(os.getpid(), signal.SIGTERM)
            # The loop handles the second one before it goes on here.
            await asyncio.sleep(0)
            return found

    assert run(loop, main()) is number


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_event_loop, WindowsLoop])
def test_handlers_are_put_back(loop: Loop) -> None:
    # A program that runs a verb in its own process would not end on these signals any more, and not know of them.
    known: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: known.append(number))
    interrupts = signal.getsignal(signal.SIGINT)

    async def main() -> None:
        for _ in range(2):
            async with stop_signal() as arrived:
                os.kill(os.getpid(), signal.SIGTERM)
                assert await arrived is signal.SIGTERM
            assert known == []
        with pytest.raises(ZeroDivisionError):
            async with stop_signal():
                raise ZeroDivisionError

    try:
        run(loop, main())
        assert signal.getsignal(signal.SIGINT) is interrupts
        os.kill(os.getpid(), signal.SIGTERM)
        assert known == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


async def test_each_signal_is_reported() -> None:
    found: list[signal.Signals] = []
    with handled(found.append, signal.SIGHUP, signal.SIGUSR1):
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: len(found) == 2)
    assert set(found) == {signal.SIGHUP, signal.SIGUSR1}
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
