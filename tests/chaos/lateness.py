"""A busy event loop: whoever opens a connection goes on only after much has come over it."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.aio import dialer, watching
from penstock.aio.driver import Driver
from penstock.events import ItemReceived, RunReceived
from tests.waiting import until

__all__ = ["be_late"]


class CountingDriver(Driver):
    """A driver that counts the items that it has handed out."""

    items = 0

    def dispatch(self, happened: list[Any]) -> None:
        for event in happened:
            if isinstance(event, RunReceived):
                self.items += len(event.run)
            elif isinstance(event, ItemReceived):
                self.items += 1
        super().dispatch(happened)


def be_late(monkeypatch: pytest.MonkeyPatch, items: int) -> None:
    """Have `Dialer.open` return no sooner than its driver has received so many items, or its session is over."""
    open_link = dialer.Dialer.open

    async def late(self: dialer.Dialer, driver: CountingDriver) -> None:
        await open_link(self, driver)
        await until(lambda: driver.items >= items or driver.closed)

    monkeypatch.setattr(watching, "Driver", CountingDriver)
    monkeypatch.setattr(dialer.Dialer, "open", late)
