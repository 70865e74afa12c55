"""Tests Weirpool against every peer in both roles: ``python -m interop``, or a part of it with the options."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from itertools import product
from pathlib import Path

from .cutting import cutting
from .generated import generated
from .harness import LEASE, SLOW
from .peers import (
    DRAFT,
    OURS,
    OURS_RIVER,
    PEERS,
    RIVER,
    RIVER_SERVER,
    ROOT,
    SPRING,
    SPRING_BOTH,
    TICKER,
    TYPESCRIPT,
    Peer,
    PeerAbsent,
    PeerMissing,
    runtime_version,
)
from .processes import ProcessFailed, run_checks, run_client, serving
from .report import STEPS, Outcome, failures, page, summary
from .throttling import throttling
from .ticker import ticker
from .tutorial import isolated, prepare

PAGE = ROOT / "docs" / "interop.md"
MIN_CUTS = 2
"""The minimum number of times that a session must have been resumed."""
READER_TIMEOUT = 900.0
"""Seconds for the tutorial, on a busy machine; otherwise it takes two minutes."""
ROLES = ("client", "server")
AT_ONCE = 2
"""Pairings at once: their programs start slowly, and mostly wait for each other then."""
INSTALLING = asyncio.Lock()
"""Held while a peer is installed: it takes part in several pairings, and the first one installs it."""
# Leases and slow links do not depend on the transport.
SPECIAL = {LEASE: ("tcp", ["--lease"]), SLOW: ("river-msgpack", ["--slow"])}
"""The transport and the options of steps that are not named after a transport."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m interop", description=__doc__)
    parser.add_argument("--peer", action="append", choices=[*PEERS, OURS.name], help="only this peer; repeatable")
    parser.add_argument("--only", choices=ROLES, help="only this role of the peer")
    parser.add_argument("--step", choices=STEPS, help="only this step")
    parser.add_argument("--versus", choices=[*PEERS, OURS.name], default=OURS.name, help="the other side, not Weirpool")
    return parser.parse_args()


async def installed(peer: Peer) -> None:
    """Install a peer if necessary; see `Peer.install`."""
    async with INSTALLING:
        await asyncio.to_thread(peer.install)


async def meet(peer: Peer, role: str, step: str, other: Peer) -> Outcome:
    """Run one pairing: `peer` in `role`, `other` in the other role."""
    outcome = Outcome(peer, role, step)
    transport, options = SPECIAL.get(step, (step, []))
    try:
        for each in (peer, other):
            await installed(each)
        client, server = (peer, other) if role == "client" else (other, peer)
        if step == SLOW:
            async with serving(server, transport, *options) as served, throttling(served.port) as port:
                outcome.results = await run_client(client, transport, served.port, port, *options)
            return outcome
        async with serving(server, transport, *options) as served, cutting(served.port) as cutter:
            outcome.results = await run_client(client, transport, served.port, cutter.port, *options)
        if outcome.results.get("resume") == "ok" and cutter.cuts < MIN_CUTS:
            outcome.results["resume"] = f"only {cutter.cuts} connections were cut, which is not enough for this check"
    except PeerAbsent as error:
        outcome.absent = str(error)
    except (PeerMissing, ProcessFailed) as error:
        outcome.failed = str(error)
    return outcome


async def meet_draft() -> Outcome:
    """Run the client of a draft against our server, which must close the connection and log the reason in one line."""
    outcome = Outcome(DRAFT, "client", "draft")
    try:
        await installed(DRAFT)
        async with serving(OURS, "tcp") as served:
            outcome.results = await run_client(DRAFT, "tcp", served.port, served.port)
            log = served.log()
    except (PeerMissing, ProcessFailed) as error:
        outcome.failed = str(error)
    else:
        named = [line for line in log if "ReactiveSocket 0.1" in line]
        outcome.results["draft-log"] = "ok" if len(named) == len(log) == 1 else f"our log: {log}"
    return outcome


async def meet_reader() -> Outcome:
    """Follow the tutorial about a Spring Boot service, with its own commands."""
    outcome = Outcome(SPRING, "server", "lakehouse")
    with tempfile.TemporaryDirectory(prefix="lakehouse-") as folder:
        try:
            await installed(SPRING)
            prepare(Path(folder))
            outcome.results = await run_checks(isolated(Path(folder)), ROOT, "a reader of the tutorial", READER_TIMEOUT)
        except (PeerMissing, ProcessFailed) as error:
            outcome.failed = str(error)
    return outcome


async def meet_program(peer: Peer, step: str, run: Callable[[Path], Awaitable[dict[str, str]]]) -> Outcome:
    """Build and run programs that use generated clients, in the folder of their packages."""
    outcome = Outcome(peer, "client", step)
    try:
        await installed(peer)
        outcome.results = await run(peer.folder)
    except (PeerMissing, ProcessFailed) as error:
        outcome.failed = str(error)
    return outcome


async def meet_spring() -> Outcome:
    """Run the examples for Spring, each side as client and as service."""
    outcome = Outcome(SPRING_BOTH, "client", "spring")
    try:
        await installed(SPRING_BOTH)
        outcome.results = await run_checks(SPRING_BOTH.client, ROOT, "the examples for Spring")
    except (PeerMissing, ProcessFailed) as error:
        outcome.failed = str(error)
    return outcome


async def meet_river_server() -> Outcome:
    """Run our River client against the reference's server, in both codecs."""
    outcome = Outcome(RIVER_SERVER, "server", "river-errors")
    try:
        await installed(RIVER_SERVER)
        for transport in RIVER:
            async with serving(RIVER_SERVER, transport) as served:
                found = await run_client(OURS_RIVER, transport, served.port, served.port)
            codec = transport.removeprefix("river-")
            outcome.results |= {f"{codec} {name}": result for name, result in found.items()}
    except (PeerMissing, ProcessFailed) as error:
        outcome.failed = str(error)
    return outcome


async def meet_generated() -> Outcome:
    """Run the TypeScript clients that are generated from a service, against that service."""
    return await meet_program(TYPESCRIPT, "typescript", generated)


async def meet_page() -> Outcome:
    """Use the page of `examples/ticker` in a browser."""
    return await meet_program(TICKER, "browser", ticker)


ALONE = {
    "draft": meet_draft,
    "river-errors": meet_river_server,
    "lakehouse": meet_reader,
    "spring": meet_spring,
    "typescript": meet_generated,
    "browser": meet_page,
}
"""Steps with a peer of their own."""


def meetings(steps: list[str], peers: list[Peer], roles: list[str], other: Peer) -> Iterator[Awaitable[Outcome]]:
    """Return all pairings."""
    for step in steps:
        if step in ALONE:
            yield ALONE[step]()
            continue
        for peer, role in product(peers, roles):
            if step in peer.steps and role in peer.roles:
                yield meet(peer, role, step, other)


async def outcomes_of(pairings: Iterator[Awaitable[Outcome]]) -> list[Outcome]:
    """Run pairings, print a line for each, and return their outcomes."""
    places = asyncio.Semaphore(AT_ONCE)

    async def run(pairing: Awaitable[Outcome]) -> Outcome:
        async with places:
            return await pairing

    outcomes = []
    async with asyncio.TaskGroup() as group:
        for task in [group.create_task(run(pairing)) for pairing in pairings]:
            outcomes.append(await task)
            print(summary(outcomes[-1]), flush=True)
    return outcomes


def versions(peers: list[Peer]) -> dict[str, str]:
    found: dict[str, str] = {}
    for peer in peers:
        try:
            peer.install()
            found[peer.title] = peer.version()
        except (PeerMissing, PeerAbsent) as error:
            found[peer.title] = f"none: {error}"
    runtimes = {"Node": ["node", "--version"], "Java": ["java", "-version"], "Rust": ["rustc", "--version"]}
    return found | {name: runtime_version(*command) for name, command in runtimes.items()}


async def main(options: argparse.Namespace) -> int:
    others = {**PEERS, OURS.name: OURS}
    chosen = [others[name] for name in options.peer] if options.peer else list(PEERS.values())
    roles = [options.only] if options.only else list(ROLES)
    part = options.peer or options.only or options.versus != OURS.name
    steps = [options.step] if options.step else [step for step in STEPS if not (part and step in ALONE)]
    outcomes = await outcomes_of(meetings(steps, chosen, roles, others[options.versus]))
    wrong = failures(outcomes)
    for line in wrong:
        print(line)
    if not part and not options.step:
        PAGE.write_text(page(outcomes, versions([*chosen, DRAFT, SPRING, TICKER, TYPESCRIPT, OURS])))
        print(f"written: {PAGE.relative_to(ROOT)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(arguments())))
