"""The conversation with one page: its messages, and the requests that it has made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from ..errors import LocalError, WeirpoolError
from ..kinds import KIND_NAMES
from ..reflection.commands import as_command, as_python
from ..reflection.notation import signature
from ..schema.budget import Budget
from .running import Report, Running, Start
from .target import State, Target
from .texts import Texts

__all__ = ["Conversation", "Place"]

MAX_RUNNING: Final = 16
"""Requests of one page at once."""
MAX_PARTS: Final = 100_000
"""Types that are written in all signatures."""


class Place(msgspec.Struct, frozen=True):
    """How the server is reached, for texts to copy.

    Attributes:
        url: Its URL.
        address: How commands name it; empty for the URL.
        options: Options of commands.
        settings: Settings of Python programs.

    """

    url: str
    address: str = ""
    options: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}


class _Message(msgspec.Struct):
    """A message of the page."""

    op: str
    id: str = ""
    kind: str = ""
    route: str = ""
    data: str = ""
    items: list[str] = []
    demand: int = 1
    auto: bool = False


_DECODER: Final = msgspec.json.Decoder(_Message)


class Conversation:
    """One page.

    Args:
        target: The server.
        place: How it is reached.
        report: Sends a message to the page.

    """

    def __init__(self, target: Target, place: Place, report: Report) -> None:
        self._target = target
        self._place = place
        self._report = report
        self._texts = Texts(place.url)
        self._running: dict[str, tuple[Running, asyncio.Task[None]]] = {}

    async def received(self, data: str | bytes) -> None:
        """Do what a message asks for; problems are reported to the page."""
        try:
            message = _DECODER.decode(data)
            await self._done(message)
        except msgspec.DecodeError as error:
            await self._report({"type": "refused", "message": f"the page has sent an invalid message: {error}"})
        except WeirpoolError as error:
            await self._report({"type": "refused", "id": message.id, "message": str(error)})

    async def tell_target(self) -> None:
        """Send the state of the server to the page."""
        target = self._target
        described = target.description
        routes = [] if described is None else described.routes
        table = {} if described is None else described.definitions
        budget = Budget(MAX_PARTS, "the signatures")
        await self._report(
            {
                "type": "target",
                "url": self._place.url,
                "state": target.state.value,
                "problem": target.problem,
                "undescribed": target.undescribed,
                "description": described,
                "signatures": [signature(each, table, budget=budget) for each in routes],
            }
        )

    async def close(self) -> None:
        """Cancel all requests of the page."""
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _done(self, message: _Message) -> None:
        if message.op == "start":
            await self._start(message)
        elif message.op == "copy":
            await self._copy(message)
        elif message.op == "describe":
            await self._target.describe()
            await self.tell_target()
        elif message.id in self._running:
            running, task = self._running[message.id]
            if message.op == "shown":
                running.shown()
            elif message.op == "request":
                running.request(message.demand)
            elif message.op == "auto":
                running.automatic(message.auto)
            elif message.op == "item":
                running.send(message.data)
            elif message.op == "complete":
                running.send(None)
            elif message.op == "cancel":
                task.cancel()

    async def _start(self, message: _Message) -> None:
        peer = self._target.peer
        problem = ""
        if message.kind not in KIND_NAMES:
            problem = f"there is no kind {message.kind!r}"
        elif peer is None or self._target.state is not State.CONNECTED:
            problem = f"there is no connection to {self._place.url}; {self._target.problem or 'wait for it'}"
        elif len(self._running) >= MAX_RUNNING or message.id in self._running:
            problem = f"{MAX_RUNNING} requests are running; cancel one"
        if problem or peer is None:
            await self._report({"type": "end", "id": message.id, "how": "failed", "message": problem})
            return
        start = Start(message.kind, message.route, message.data, message.demand, message.auto)
        running = Running(start, self._texts, self._target.metadata, partial(self._report_of, message.id))
        task = asyncio.create_task(running.run(peer))
        self._running[message.id] = running, task
        task.add_done_callback(lambda _: self._running.pop(message.id, None))
        # A task that is canceled before it has begun would not report its end.
        await asyncio.sleep(0)

    async def _report_of(self, request_id: str, message: dict[str, Any]) -> None:
        await self._report({"id": request_id, **message})

    async def _copy(self, message: _Message) -> None:
        place = self._place
        request = (message.route, message.kind, message.data, message.items)
        copied: dict[str, Any] = {
            "type": "copied",
            "id": message.id,
            "python": as_python(place.url, *request, dict(place.settings)),
        }
        try:
            copied["command"] = as_command(place.address or place.url, *request, place.options)
        except LocalError as error:
            # A program can have texts that a command cannot.
            copied["refused"] = str(error)
        await self._report(copied)
