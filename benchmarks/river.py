"""River over WebSocket on loopback: calls between two processes, with texts of 128 characters.

All sides write MessagePack. replit-river is only a client, of our server, because its server speaks another version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack

from interop.peers import PEERS, PeerAbsent, PeerMissing

from .processes import Variant, Worker
from .report import Table
from .rounds import Runner, in_turns

OURS = Variant("Weirpool", "ours_river")
ASYNCIO = Variant("Weirpool, asyncio's loop", "ours_river", loop="asyncio")
PLAIN = Variant("Weirpool, plain build", "ours_river", plain=True)
JAVASCRIPT = PEERS["river-js"]
PYTHON = PEERS["river-py"]

CALLS = {f"river-calls-{in_flight}": in_flight for in_flight in (1, 64)}
SCENARIOS = tuple(CALLS)


def others() -> Iterator[tuple[Variant, Variant]]:
    """Yield the client and the server of each peer that is available, and report the others."""
    for peer in (JAVASCRIPT, PYTHON):
        try:
            peer.install()
        except (PeerMissing, PeerAbsent) as error:
            print(f"skipped {peer.title}: {error}", file=sys.stderr)
            continue
        program = "bench.js" if peer is JAVASCRIPT else "bench.py"
        variant = Variant(peer.title, peer.name, command=(peer.client[0], str(peer.folder / program)))
        if peer is JAVASCRIPT:
            yield variant, variant
        else:
            yield Variant(f"{variant.name}, our server", variant.peer, command=variant.command), OURS


def measure(scenarios: list[str], seconds: float, rounds: int) -> Iterator[Table]:
    """Run `scenarios` with all peers, and yield a table for each as it completes."""
    with ExitStack() as stack:
        pairs = {}
        for client, server in ((OURS, OURS), (ASYNCIO, ASYNCIO), (PLAIN, PLAIN), *others()):
            listening = stack.enter_context(Worker(server))
            pairs[client] = stack.enter_context(Worker(client, listening.ready)), listening
        for name in scenarios:
            runners = [Runner(variant, *pair, "calls", (CALLS[name],)) for variant, pair in pairs.items()]
            by_bytes = Variant("Weirpool, bytes", OURS.peer)
            runners.insert(1, Runner(by_bytes, *pairs[OURS], "calls_by_bytes", (CALLS[name],)))
            title = f"calls by River over WebSocket, {CALLS[name]} in flight"
            yield Table(name, title, "calls", in_turns(runners, seconds, rounds))
