from __future__ import annotations

import asyncio
import os
import signal

import pytest

from penstock.cli.signals import stop_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_is_the_one_that_counts(number: signal.Signals) -> None:
    async def main() -> signal.Signals:
        arrived = stop_signal()
        os.kill(os.getpid(), number)
        found = await arrived
        os.kill(os.getpid(), signal.SIGTERM)
        # The loop handles the second one before it goes on here.
        await asyncio.sleep(0)
        return found

    assert asyncio.run(main()) is number
