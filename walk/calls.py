"""Traces one warm call of each protocol and prints the counts as JSON: ``python -m walk.calls``.

Both sides run in this process, over the memory transport and on the plain build.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Final

import weirpool
from weirpool import Connection, Kind, Payload, Peer, Service, Tap, connect, serve
from weirpool.transports.memory import MemoryLink
from weirpool.transports.turns import turns_of

from .trips import Step, Walk, measure

PACKAGE: Final = str(Path(inspect.getfile(weirpool)).parent) + "/"
TRANSPORT: Final = inspect.getfile(MemoryLink)
PROTOCOLS: Final = {"RSocket": "rsocket", "River": "river", "reactive-streams": "reactive-streams"}
WARM_UP: Final = 8
"""Calls before those that are traced; the first calls import modules and fill tables."""
TRACED: Final = 3
"""Calls to trace. The shortest counts, because a timer may run during one of them."""
SETTLE_TURNS: Final = 16
"""Turns of the event loop between two traced calls."""
DATA: Final = b"{}"
"""A request that is valid in every protocol."""

service = Service()


@service.call("walk.echo")
def echo(request: Payload) -> Payload:
    """Return the request."""
    return request


class OneMethod(Tap):
    """A tap with one method."""

    def stream_opened(self, connection: Connection, kind: Kind, ours: bool) -> None:
        """Do nothing."""


class Recorder:
    """A profile function that records the steps of the interpreter."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Record one event."""
        if event == "call":
            file = _shown(frame.f_code.co_filename)
            self.steps.append(Step(file, frame.f_code.co_name, _mark(frame), file == _shown(__file__)))
        elif event == "return" and frame.f_back is not None:
            file = _shown(frame.f_back.f_code.co_filename)
            self.steps.append(Step(file, user=file == _shown(__file__)))


def _shown(file: str) -> str | None:
    """Return the name of a file of Weirpool or of the user; None for others."""
    if file == __file__:
        return "the user's"
    return file.removeprefix(PACKAGE) if file.startswith(PACKAGE) else None


def _mark(frame: FrameType) -> str:
    code = frame.f_code
    if code is echo.__code__:
        return "handler"
    if code is MemoryLink.write.__code__:
        return "departure"
    # A call of the transport by the event loop means that bytes have arrived.
    is_from_outside = frame.f_back is None or _shown(frame.f_back.f_code.co_filename) is None
    return "arrival" if code.co_filename == TRANSPORT and is_from_outside else ""


async def _traced(peer: Peer) -> Walk:
    recorder = Recorder()
    sys.setprofile(recorder)
    try:
        await peer.call("walk.echo", DATA)
    finally:
        sys.setprofile(None)
    return measure(recorder.steps)


async def walk(protocol: str, taps: Iterable[Tap] = ()) -> Walk:
    """Return the walk of a warm call; `taps` observe both sides."""
    taps = tuple(taps)
    async with (
        serve(service, f"{protocol}+memory://walk", taps=taps) as server,
        connect(server.urls[0], taps=taps) as peer,
    ):
        for _ in range(WARM_UP):
            await peer.call("walk.echo", DATA)
        # What a call does must not depend on the time that it takes.
        turns_of(asyncio.get_running_loop()).clock = lambda: 0.0
        gc.disable()
        walks = []
        for _ in range(TRACED):
            # Remaining work of the previous call, such as granting credit, must not count for this one.
            for _ in range(SETTLE_TURNS):
                await asyncio.sleep(0)
            walks.append(await _traced(peer))
        gc.enable()
    return min(walks, key=lambda one: (one.calls, one.changes))


def walks() -> dict[str, Walk]:
    """Return the walk of a call for each protocol, and one with a tap."""
    done = {title: asyncio.run(walk(protocol)) for title, protocol in PROTOCOLS.items()}
    return done | {"RSocket, tapped": asyncio.run(walk("rsocket", [OneMethod()]))}


def main() -> None:
    """Print all walks as JSON."""
    if weirpool.ACCELERATED:
        raise SystemExit("walk: compiled functions cannot be traced; set WEIRPOOL_PURE=1")
    json.dump({title: asdict(one) for title, one in walks().items()}, sys.stdout)


if __name__ == "__main__":
    main()
