"""The laboratories of a balancer's choice: nodes that fail in every way, and nodes with unequal leases."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import weirpool
from tests.sim.clockwork import run
from weirpool import ApplicationError, IntervalLease, Payload, Reconnect, Rejected, Service, Settings, WeirpoolError

__all__ = ["bad_nodes", "unequal_leases"]

STRATEGIES = ("round-robin", "least-loaded")
CALLERS = 5
IN_FLIGHT = 60
"""Slow calls when a node dies, half of them on it."""
PAUSE = 0.03
"""Seconds between the calls of one caller."""
SECONDS = 4.0
"""The length of a play."""
PATIENCE = 0.5
"""Seconds after which a caller gives up."""
LIMIT = 1_000.0
QUICK = Reconnect(first_delay=0.05, longest_delay=0.2)
URLS = ["rsocket+memory://bad", "rsocket+memory://good"]


class Pair:
    """A bad node and a good one behind a balancer.

    Attributes:
        ails: What the bad node does: "fails", "refuses" or "is silent"; empty: nothing, it answers.
        asked: Calls by the node that got them.
        failed: Calls that failed.

    """

    def __init__(self, ails: str) -> None:
        self.ails = ails
        self.asked: Counter[str] = Counter()
        self.failed = 0
        self._over = False

    def service(self, name: str) -> Service:
        service = Service()

        @service.call("name")
        async def answer(request: Payload) -> bytes:
            self.asked[name] += 1
            if name == "bad" and self.ails == "fails":
                raise ApplicationError(0x301, "broken")
            if name == "bad" and self.ails == "refuses":
                raise Rejected(message="full")
            if name == "bad" and self.ails == "is silent":
                await asyncio.get_running_loop().create_future()
            await asyncio.sleep(0.005)
            return b""

        @service.call("slow")
        async def answer_later(request: Payload) -> bytes:
            await asyncio.sleep(1.0)
            return b""

        return service

    async def _ask(self, balancer: weirpool.Balancer) -> None:
        while not self._over:
            try:
                async with asyncio.timeout(PATIENCE):
                    await balancer.call("name")
            except (WeirpoolError, TimeoutError):
                self.failed += 1
            await asyncio.sleep(PAUSE)

    async def play(self, strategy: str, *steps: str) -> list[Counter[str]]:
        """Return who was asked in each step: "" changes nothing, "heal" and "restart" concern the bad node."""
        found = []
        servers = [await weirpool.serve(self.service(url.partition("//")[2]), url) for url in URLS]
        clock = asyncio.get_running_loop().time
        async with weirpool.balance(URLS, strategy=strategy, reconnect=QUICK, clock=clock) as balancer:
            callers = [asyncio.ensure_future(self._ask(balancer)) for _ in range(CALLERS)]
            for step in steps:
                if step == "heal":
                    self.ails = ""
                elif step == "restart":
                    slow = [asyncio.ensure_future(balancer.call("slow")) for _ in range(IN_FLIGHT)]
                    await asyncio.sleep(0.1)
                    await servers[0].close(0)
                    servers[0] = await weirpool.serve(self.service("bad"), URLS[0])
                    await asyncio.gather(*slow, return_exceptions=True)
                await asyncio.sleep(SECONDS)
                found.append(self.asked)
                self.asked = Counter()
            self._over = True
            await asyncio.gather(*callers)
        for server in servers:
            await server.close(0)
        return found


def bad_nodes(folder: Path) -> Iterator[str]:
    """Put a node that fails, refuses, is silent or dies next to a good one; it is avoided, and tried again."""
    for strategy in STRATEGIES:
        for ails in ("fails", "refuses", "is silent"):
            pair = Pair(ails)
            [asked] = run(pair.play(strategy, ""), limit=LIMIT)
            if asked["bad"] * 4 > asked["good"]:
                yield f"{strategy}: a node that {ails} got {asked['bad']} calls, and the good one {asked['good']}"
        pair = Pair("fails")
        *_, healed = run(pair.play(strategy, "", "heal", "", ""), limit=LIMIT)
        if healed["bad"] * 5 < healed["good"]:
            yield f"{strategy}: a node that works again got {healed['bad']} calls, and the other one {healed['good']}"
        pair = Pair("")
        *_, back = run(pair.play(strategy, "", "restart"), limit=LIMIT)
        if back["bad"] * 5 < back["good"] or pair.failed > CALLERS:
            yield f"{strategy}: a restarted node got {back['bad']} of {back.total()} calls; {pair.failed} failed"


def unequal_leases(folder: Path) -> Iterator[str]:
    """Grant one node 300 requests, and another one 100; the requests are shared accordingly."""
    for strategy in STRATEGIES:
        few, many = run(_share(strategy), limit=LIMIT)
        if not 15 <= few <= 25:
            yield f"{strategy}: the node with 100 requests left got {few} of 80, the one with 300 got {many}"


async def _share(strategy: str) -> tuple[int, int]:
    asked: Counter[str] = Counter()
    servers = []
    for name, count in (("few", 100), ("many", 300)):
        service = Service()

        @service.call("name")
        async def answer(request: Payload, name: str = name) -> bytes:
            asked[name] += 1
            await asyncio.sleep(0.005)
            return b""

        lease = Settings(lease=IntervalLease(count, 3600.0))
        servers.append(await weirpool.serve(service, f"rsocket+memory://{name}", settings=lease))
    options: Any = {"strategy": strategy, "settings": Settings(lease=True), "clock": asyncio.get_running_loop().time}
    async with weirpool.balance([server.urls[0] for server in servers], **options) as balancer:
        await asyncio.sleep(0.1)
        for _ in range(10):
            await asyncio.gather(*(balancer.call("name") for _ in range(8)))
    for server in servers:
        await server.close(0)
    return asked["few"], asked["many"]
