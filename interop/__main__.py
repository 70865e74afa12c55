"""Runs every peer against us in both roles: ``python -m interop``, or a part of it with ``--peer`` and ``--only``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from itertools import product

from .cutting import cutting
from .peers import OURS, PEERS, ROOT, TRANSPORTS, Peer, PeerMissing, runtime_version
from .processes import ProcessFailed, run_client, serving
from .report import Outcome, failures, page, summary

PAGE = ROOT / "docs" / "interop.md"
MIN_CUTS = 2
"""How often a session must have been resumed."""
ROLES = ("client", "server")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m interop", description=__doc__)
    parser.add_argument("--peer", action="append", choices=[*PEERS, OURS.name], help="this peer, not all; repeatable")
    parser.add_argument("--only", choices=ROLES, help="this role of the peer, not both")
    parser.add_argument("--transport", choices=TRANSPORTS, help="over this, not all")
    parser.add_argument("--versus", choices=[*PEERS, OURS.name], default=OURS.name, help="the other side, if not ours")
    return parser.parse_args()


async def meet(peer: Peer, role: str, transport: str, other: Peer) -> Outcome:
    """Run one pairing: `peer` in `role`, `other` in the other one."""
    outcome = Outcome(peer, role, transport)
    try:
        for each in (peer, other):
            await asyncio.to_thread(each.install)
        client, server = (peer, other) if role == "client" else (other, peer)
        async with serving(server, transport) as port, cutting(port) as cutter:
            outcome.results = await run_client(client, transport, port, cutter.port)
        if outcome.results.get("resume") == "ok" and cutter.cuts < MIN_CUTS:
            outcome.results["resume"] = f"only {cutter.cuts} connections were cut: this proves nothing"
    except (PeerMissing, ProcessFailed) as error:
        outcome.failed = str(error)
    return outcome


def versions(peers: list[Peer]) -> dict[str, str]:
    found: dict[str, str] = {}
    for peer in peers:
        try:
            peer.install()
            found[peer.title] = peer.version()
        except PeerMissing as error:
            found[peer.title] = f"none: {error}"
    return found | {"Node": runtime_version("node", "--version"), "Java": runtime_version("java", "-version")}


async def main(options: argparse.Namespace) -> int:
    others = {**PEERS, OURS.name: OURS}
    chosen = [others[name] for name in options.peer] if options.peer else list(PEERS.values())
    roles = [options.only] if options.only else ROLES
    transports = [options.transport] if options.transport else TRANSPORTS
    outcomes: list[Outcome] = []
    for transport, peer, role in product(transports, chosen, roles):
        if transport not in peer.transports:
            continue
        outcomes.append(await meet(peer, role, transport, others[options.versus]))
        print(summary(outcomes[-1]), flush=True)
    wrong = failures(outcomes)
    for line in wrong:
        print(line)
    if not (options.peer or options.only or options.transport) and options.versus == OURS.name:
        PAGE.write_text(page(outcomes, versions([*chosen, OURS])))
        print(f"written: {PAGE.relative_to(ROOT)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(arguments())))
