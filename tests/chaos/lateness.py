"""A busy event loop: whoever opens a connection goes on only after much has come over it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.waiting import until
from weirpool.aio import dialer
from weirpool.aio.driver import Driver
from weirpool.aio.ports import Sink
from weirpool.events import ItemReceived, RunReceived

__all__ = ["be_late"]


class CountingSink:
    """Counts the items that pass it.

    Args:
        sink: What they go to.

    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.items = 0

    def take(self, happened: list[Any]) -> None:
        for event in happened:
            if isinstance(event, RunReceived):
                self.items += len(event.run)
            elif isinstance(event, ItemReceived):
                self.items += 1
        self.sink.take(happened)


def be_late(monkeypatch: pytest.MonkeyPatch, items: int) -> None:
    """Have `Dialer.open` return no sooner than its driver has received so many items, or its session is over."""
    open_link = dialer.Dialer.open

    async def late(self: dialer.Dialer, driver: Driver) -> None:
        driver.sink = sink = CountingSink(driver.sink)
        await open_link(self, driver)
        await until(lambda: sink.items >= items or driver.closed)

    monkeypatch.setattr(dialer.Dialer, "open", late)
