"""Serves a recording: the requests that it has get their recorded responses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final

from ..aio.handlers import Next, Request
from ..aio.service import Service
from ..bridging.anyroute import AnyRoute
from ..errors import ApplicationError, Canceled, Invalid, LocalError, Rejected
from ..kinds import ANY, Kind
from ..payload import Payload
from .format import Event, events, open_recording

__all__ = ["Interaction", "Recording", "Replay", "paced_events"]

logger = logging.getLogger("weirpool.replay")

MAX_INTERACTIONS: Final = 1_000_000
"""Interactions of one recording: their places are kept in memory, their items are not."""
LATE_SECONDS: Final = 0.02
"""An item that is later than this, because its consumer was slow, delays those after it."""
CLASSES: Final[dict[int | str, type[ApplicationError]]] = {0x202: Rejected, 0x203: Canceled, 0x204: Invalid}


@dataclass(slots=True)
class Interaction:
    """Where an interaction is in the file.

    Attributes:
        number: Its number.
        kind: Its kind.
        route: Its route.
        key: A hash of the request's data.
        start: The offset of the request.
        stop: The offset of its last event.
        items: How many items the server has sent.
        sent: How many items the client has sent after the request.

    """

    number: int
    kind: Kind
    route: str
    key: int
    start: int
    stop: int
    items: int = 0
    sent: int = 0


@dataclass
class Recording:
    """A recording that is read where it is needed. Only the places of its interactions are in memory.

    Attributes:
        path: The file.
        url: Where the responses came from.
        interactions: All interactions, in order.

    """

    path: Path
    url: str = ""
    interactions: list[Interaction] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read where the interactions of a file are.

        Raises:
            LocalError: The file cannot be read, is damaged, or has no or too many interactions.

        """
        file, head = open_recording(path)
        recording = cls(path, head.url)
        known: dict[int, Interaction] = {}
        with file:
            for offset, event in events(file, str(path)):
                if event.event == "request":
                    known[event.stream] = recording._add(event, offset)
                elif event.stream in known:
                    _count(known[event.stream], event, offset)
        if not recording.interactions:
            raise LocalError(f"{str(path)!r} has no requests")
        return recording

    def _add(self, event: Event, offset: int) -> Interaction:
        if len(self.interactions) >= MAX_INTERACTIONS:
            raise LocalError(f"{str(self.path)!r} has more than {MAX_INTERACTIONS} interactions")
        try:
            kind = Kind[event.kind.upper()]
        except KeyError:
            raise LocalError(f"{str(self.path)!r}, byte {offset}: unknown kind {event.kind!r}") from None
        found = Interaction(event.stream, kind, event.route, hash(event.payload.data), offset, offset)
        self.interactions.append(found)
        return found

    def events(self, interaction: Interaction) -> Iterator[Event]:
        """Yield the events of an interaction, without others in between."""
        file, _ = open_recording(self.path)
        with file:
            file.seek(interaction.start)
            for offset, event in events(file, str(self.path)):
                if event.stream == interaction.number:
                    yield event
                if offset >= interaction.stop:
                    return


def _count(interaction: Interaction, event: Event, offset: int) -> None:
    interaction.stop = offset
    interaction.items += event.event == "item"
    interaction.sent += event.event == "sent"


async def paced_events(found: Iterator[Event], speed: float) -> AsyncIterator[Event]:
    """Yield events with their recorded distances, divided by `speed`; inf: without waiting.

    If the consumer is slower, the events wait for it, and those after them keep their distance: nothing is dropped.
    """
    clock = asyncio.get_running_loop().time
    due = clock()
    before: float | None = None
    for event in found:
        if speed < inf and before is not None:
            due += max(event.t - before, 0.0) / speed
            wait = due - clock()
            if wait > 0:
                await asyncio.sleep(wait)
            elif wait < -LATE_SECONDS:
                due = clock()
        before = event.t
        yield event


class Replay:
    """Answers requests from a recording.

    A request gets the response that was recorded for the same route and data. If there are several, it gets them in
    turn. If there are none for its data, it gets those of its route.

    Args:
        recording: The recording.
        speed: How much faster than recorded; inf: as fast as clients take items.
        loop: Begin streams again when they end.

    Attributes:
        service: The service to serve.

    """

    def __init__(self, recording: Recording, speed: float = 1.0, loop: bool = False) -> None:
        self._recording = recording
        self._speed = speed
        self._loop = loop
        self._by_data: dict[tuple[str, int], list[Interaction]] = {}
        self._by_route: dict[str, list[Interaction]] = {}
        self._turns: dict[tuple[str, int], int] = {}
        for each in recording.interactions:
            self._by_data.setdefault((each.route, each.key), []).append(each)
            self._by_route.setdefault(each.route, []).append(each)
        self.service: Service = AnyRoute(self._kind_of, self._answer)

    def _kind_of(self, route: str) -> int:
        found = self._by_route.get(route)
        return ANY if found is None else found[0].kind

    def _choose(self, request: Request) -> Interaction:
        """Return the recorded interaction for a request."""
        key = request.route, hash(request.payload.data)
        candidates = self._by_data.get(key)
        if candidates is None:
            key = request.route, 0
            candidates = self._by_route.get(request.route, [])
        if not candidates:
            known = ", ".join(repr(route) for route in list(self._by_route)[:5])
            raise Rejected(message=f"the recording has no {request.route[:100]!r}; it has {known}")
        turn = self._turns.get(key, 0)
        self._turns[key] = turn + 1
        return candidates[turn % len(candidates)]

    async def _answer(self, request: Request, next: Next) -> Any:
        chosen = self._choose(request)
        if request.kind.answers_items:
            return self._items(chosen, request.items)
        async for item in self._once(chosen):
            return item
        return Payload()

    async def _items(self, chosen: Interaction, incoming: Any) -> AsyncIterator[Payload]:
        reading = None if incoming is None else asyncio.ensure_future(_read(incoming))
        try:
            while True:
                async for item in self._once(chosen):
                    yield item
                # Without items, a loop would never rest.
                if not self._loop or not chosen.items:
                    break
        finally:
            if reading is not None:
                reading.cancel()

    async def _once(self, chosen: Interaction) -> AsyncIterator[Payload]:
        answered = (
            event
            for event in self._recording.events(chosen)
            if event.event in ("request", "item", "end", "error", "cancel")
        )
        async for event in paced_events(answered, self._speed):
            if event.event == "item":
                yield event.payload
            elif event.event == "error":
                made = CLASSES.get(event.code, ApplicationError)
                data = event.payload.data or None
                raise made(event.code, event.message, data)


async def _read(items: AsyncIterator[Payload]) -> None:
    """Take the items of a client, so that it gets credit for more."""
    try:
        async for _ in items:
            pass
    except ApplicationError as error:
        logger.info("the client's items failed: %s", error)
