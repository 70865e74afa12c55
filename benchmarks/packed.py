"""Packed numbers of 8 bytes in reactive-streams-io, to record batches, compared with one copy of their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from .codec import NO_ADDRESS
from .processes import Variant, Worker
from .report import Table
from .rounds import Runner, in_turns

OURS = Variant("Weirpool", "ours_packed")
ASYNCIO = Variant("Weirpool, asyncio's loop", "ours_packed", loop="asyncio")
PLAIN = Variant("Weirpool, plain build", "ours_packed", plain=True)
BARE = Variant("only bytes", "bare_tcp")
COPY = Variant("memcpy", "ours_packed")

SCENARIOS = ("packed", "packed-tcp")


def measure(scenarios: list[str], seconds: float, rounds: int) -> Iterator[Table]:
    """Run `scenarios` with both builds and with a copy of the same bytes, and yield a table for each."""
    with ExitStack() as stack:
        if "packed" in scenarios:
            workers = {one: stack.enter_context(Worker(one, NO_ADDRESS)) for one in (OURS, PLAIN, COPY)}
            runners = [
                Runner(one, worker, None, "copy" if one is COPY else "session") for one, worker in workers.items()
            ]
            title = "packed numbers from reads to record batches, without a network"
            yield Table("packed", title, "kB", in_turns(runners, seconds, rounds))
        if "packed-tcp" in scenarios:
            runners = []
            for one in (OURS, ASYNCIO, PLAIN, BARE):
                server = stack.enter_context(Worker(one))
                runners.append(Runner(one, stack.enter_context(Worker(one, server.ready)), server, "batches"))
            copier = stack.enter_context(Worker(COPY, NO_ADDRESS))
            runners.append(Runner(COPY, copier, None, "copy"))
            title = "packed numbers over loopback TCP, from record batches to record batches"
            yield Table("packed-tcp", title, "kB", in_turns(runners, seconds, rounds))
