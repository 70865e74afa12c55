"""Requests that wait for another turn of the event loop, because the handlers before them took long."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ..account import ITEM_BYTES, Account
from ..events import Canceled, Event, Failed, Requested
from .exchanges import Exchanges
from .sizes import size_of

__all__ = ["CHECK_EVERY", "LateRequests"]

logger = logging.getLogger("weirpool.aio")

CHECK_EVERY: Final = 8
"""The number of requests after which the time is checked again: reading the clock for each would slow down calls."""
REQUEST_BYTES: Final = 304
"""Memory that a request takes while it waits, besides its payload."""


class LateRequests:
    """Requests of one connection that wait, and what has arrived for their streams.

    They are begun in the turns of its link, before anything else is decoded. So they are few: at most those of the
    frames that were decoded together.

    Args:
        exchanges: The owners of the connection's streams.
        begin: Handles the events of one stream.

    Attributes:
        active: All new requests wait, because others do.

    """

    __slots__ = ("_account", "_begin", "_exchanges", "_flow", "_slots", "_streams", "active")

    def __init__(self, exchanges: Exchanges, begin: Callable[[list[Event]], None]) -> None:
        self._exchanges = exchanges
        self._flow = flow = exchanges.flow
        self._slots = exchanges.slots
        self._begin = begin
        # By stream: its request, and later events. To find the first key of a dict takes as long as keys were removed.
        self._streams: OrderedDict[int, list[Event]] = OrderedDict()
        self._account = Account(0, flow.account)
        self.active = False

    def start(self) -> None:
        """Let new requests wait for the turn of the link, and until a handler has returned if there is no slot."""
        self.active = self._flow.late = True
        if self._slots.full():
            self._slots.wait()
        self._flow.wait_turn()

    def sift(self, events: list[Event]) -> list[Event]:
        """Hold requests and what follows on their streams; return the other events.

        A request whose stream ends while it waits is never begun.
        """
        passed = []
        for event in events:
            held = self._streams.get(event.stream_id)
            if isinstance(event, Requested):
                self._streams[event.stream_id] = [event]
                self._account.book(_size(event))
            elif held is None:
                passed.append(event)
            elif isinstance(event, Failed) or (isinstance(event, Canceled) and event.done):
                self._remove(event.stream_id)
            else:
                held.append(event)
                self._account.book(_size(event))
        return passed

    def step(self) -> None:
        """Begin at least one request if there is a slot, and others until the time of the turn is used."""
        slots, turns = self._slots, self._flow.turns
        self.active = False
        while self._streams and not slots.full():
            self._begin(self._remove(next(iter(self._streams))))
            if turns.over():
                break
        self.active = self._flow.late = bool(self._streams)
        if self.active and slots.full():
            slots.wait()

    async def finish_fires(self, deadline: float) -> None:
        """Wait for requests without a response to begin, and for their handlers; until `deadline` at the latest."""
        while self.active and self._flow.loop.time() < deadline:  # noqa: ASYNC110  # Each turn begins some.
            await asyncio.sleep(0)
        if self.active:
            logger.warning("%s: %d requests were received and not begun", self._flow.name, len(self._streams))
        await self._exchanges.finish_fires(deadline)

    def _remove(self, stream_id: int) -> list[Event]:
        events = self._streams.pop(stream_id)
        self._account.release(sum(map(_size, events)))
        return events


def _size(event: Event) -> int:
    return REQUEST_BYTES + size_of(event.payload) if isinstance(event, Requested) else ITEM_BYTES
