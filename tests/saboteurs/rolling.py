"""The laboratories of servers that come and go: restarts under load behind a balancer, leases that run out, and
listening sockets and certificates that others replace.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import weirpool
from tests.sim.clockwork import Network, Stuck, network, run
from tests.sim.links import Road
from tests.transports.certificates import Certificates
from weirpool import IntervalLease, Items, Payload, Reconnect, Rejected, Service, Settings, WeirpoolError
from weirpool.aio.balanced import Balanced
from weirpool.aio.nodes import Node
from weirpool.kinds import Kind
from weirpool.rsocket.session import RSocketSession
from weirpool.transports import reloading
from weirpool.transports.tls import server_contexts
from weirpool.urls import parse_url

__all__ = ["certificates", "cuts", "leased_nodes", "restarts", "sockets"]

PROTOCOLS = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams", "river")
SEEDS = 6
CALLERS = 4
STREAMS = 2
UPLOADS = 2
ITEMS = 5
RESTARTS = 4
LIMIT = 1_000.0
"""Seconds of virtual time within which everything has ended."""
PATIENCE = 10.0
"""Seconds for a laboratory with sockets."""
MAX_PICKS = 10_000
"""Nodes that are picked for 500 calls."""
QUICK = Reconnect(first_delay=0.05, longest_delay=0.2)


class World:
    """Two servers behind a balancer.

    Args:
        protocol: The protocol of all.
        seed: The seed of all choices.

    """

    def __init__(self, protocol: str, seed: int) -> None:
        self.rng = random.Random(f"{protocol} {seed}")
        self.urls = [f"{protocol}+memory://{name}" for name in "ab"]
        self.started: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.breaches: list[str] = []
        self.over = False
        self.service = Service()
        self.service.call("one.call")(self.answer)
        self.service.stream("one.stream")(self.items)
        self.service.upload("one.upload")(self.total)
        # River has read a generator before it is refused, but a list can be read again.
        self.rereads = protocol == "river"
        self.kinds = ["call"] * CALLERS + ["stream"] * STREAMS
        if protocol in ("rsocket", "reactivesocket-0.2", "river"):
            self.kinds += ["upload"] * UPLOADS

    async def answer(self, request: Payload) -> Payload:
        self.started["call"] += 1
        await asyncio.sleep(self.rng.random() * 0.05)
        return request

    async def items(self, request: Payload) -> AsyncIterator[Payload]:
        self.started["stream"] += 1
        for _ in range(ITEMS):
            await asyncio.sleep(self.rng.random() * 0.02)
            yield request

    async def total(self, request: Payload, items: Items) -> bytes:
        self.started["upload"] += 1
        return b"%d" % sum([int(item.data) async for item in items])

    async def upload(self, balancer: weirpool.Balancer) -> None:
        listed = [b"%d" % number for number in range(ITEMS)]
        spent = self.rereads and self.rng.random() < 0.5
        source = iter(listed) if spent or not self.rereads else listed
        try:
            answer = await balancer.upload("one.upload", b"0", source)
        except Rejected:
            if not spent:
                raise
            # It is not counted: no handler has started.
            self.answered["upload"] -= 1
        else:
            if int(answer.data) != sum(range(ITEMS)):
                self.breaches.append(f"an upload lost items: {answer.data!r}")

    async def ask(self, balancer: weirpool.Balancer, kind: str) -> None:
        while not self.over:
            try:
                if kind == "call":
                    await balancer.call("one.call", b"0")
                elif kind == "upload":
                    await self.upload(balancer)
                else:
                    assert len([item async for item in balancer.stream("one.stream", b"0")]) == ITEMS
                self.answered[kind] += 1
            except WeirpoolError as error:
                self.breaches.append(f"a {kind} failed: {error!r}")
                return

    async def cut(self, net: Network) -> None:
        """Break the links again and again: requests fail, but none is asked twice."""
        async with weirpool.serve(self.service, self.urls[0]), weirpool.serve(self.service, self.urls[1]):
            async with self.balancer() as balancer:
                for number in range(RESTARTS):
                    tasks = [asyncio.ensure_future(balancer.call("one.call", b"0")) for _ in range(CALLERS)]
                    await asyncio.sleep(self.rng.uniform(0.02, 0.06))
                    net.cut()
                    await asyncio.gather(*tasks, return_exceptions=True)
                    if self.started["call"] > (number + 1) * CALLERS:
                        self.breaches.append(f"{CALLERS} calls started {self.started['call']} handlers")

    async def close(self, server: weirpool.Server) -> None:
        """Close a server; its clients leave as soon as it has told them."""
        began = asyncio.get_running_loop().time()
        await server.close()
        seconds = asyncio.get_running_loop().time() - began
        if seconds > 1.0:
            self.breaches.append(f"a server took {seconds:.1f} s to close")

    def balancer(self) -> weirpool.Balancer:
        return weirpool.balance(self.urls, reconnect=QUICK)

    async def play(self) -> None:
        servers = [await weirpool.serve(self.service, url) for url in self.urls]
        async with self.balancer() as idle, self.balancer() as balancer:
            tasks = [asyncio.ensure_future(self.ask(balancer, kind)) for kind in self.kinds]
            for number in range(RESTARTS):
                await asyncio.sleep(self.rng.uniform(0.5, 1.0))
                await self.close(servers[number % 2])
                await asyncio.sleep(self.rng.uniform(0.1, 0.5))
                servers[number % 2] = await weirpool.serve(self.service, self.urls[number % 2])
            await asyncio.sleep(1.0)
            self.over = True
            await asyncio.gather(*tasks)
            await idle.call("one.call", b"0")
            self.answered["call"] += 1
        for server in servers:
            await server.close(0)
        if self.started != self.answered:
            self.breaches.append(f"{dict(self.started)} were started, {dict(self.answered)} answered")


def restarts(folder: Path) -> Iterator[str]:
    """Restart two servers in turn under load; no request fails, and each starts one handler."""
    for seed in range(SEEDS):
        for protocol in PROTOCOLS:
            world = World(protocol, seed)
            with network(lambda number: (Road(delay=0.01), Road(delay=0.01))):
                try:
                    run(world.play(), seed=seed, limit=LIMIT)
                except (TimeoutError, Stuck):
                    yield f"{protocol}, seed {seed}: it never ends"
                except WeirpoolError as error:
                    yield f"{protocol}, seed {seed}: {error!r}"
            yield from (f"{protocol}, seed {seed}: {breach}" for breach in world.breaches)


def cuts(folder: Path) -> Iterator[str]:
    """Break links under load; no request may be processed twice."""
    for protocol in PROTOCOLS[:4]:
        for seed in range(SEEDS):
            world = World(protocol, seed)
            with network(lambda number: (Road(delay=0.01), Road(delay=0.01))) as net:
                run(world.cut(net), seed=seed, limit=LIMIT)
            yield from (f"{protocol}, seed {seed}: {breach}" for breach in world.breaches)


def leased_nodes(folder: Path) -> Iterator[str]:
    """Give one of two nodes few leases; the other one answers what it cannot, at once."""
    for strategy in ("round-robin", "least-loaded"):
        with (
            network(lambda number: (Road(delay=0.01), Road(delay=0.01))),
            mock.patch.object(Balanced, "pick", _picker()),
        ):
            try:
                yield from run(_share(strategy), limit=LIMIT)
            except Stuck:
                yield f"{strategy}: the balancer picks nodes again and again"


def _picker() -> Callable[..., Awaitable[Node]]:
    """Return a method that picks a node, but not for ever in one turn."""
    pick, count = Balanced.pick, 0

    async def counted(self: Balanced, refused: Collection[Node] = ()) -> Node:
        nonlocal count
        count += 1
        if count > MAX_PICKS:
            raise Stuck
        return await pick(self, refused)

    return counted


async def _share(strategy: str) -> list[str]:
    answered: Counter[str] = Counter()
    breaches: list[str] = []

    def service(name: str) -> Service:
        made = Service()

        @made.call("name")
        async def answer(request: Payload) -> bytes:
            answered[name] += 1
            await asyncio.sleep(0.005)
            return name.encode()

        return made

    async def ask(balancer: weirpool.Balancer) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(50):
            began = loop.time()
            try:
                await balancer.call("name")
            except WeirpoolError as error:
                breaches.append(f"{strategy}: {error!r}")
            if loop.time() - began > 0.5:
                breaches.append(f"{strategy}: a call waited for {loop.time() - began:.1f} s")
            await asyncio.sleep(0.01)

    few, many = (Settings(lease=IntervalLease(number, 1.0)) for number in (5, 100_000))
    urls = ["rsocket+memory://few", "rsocket+memory://many"]
    async with weirpool.serve(service("few"), urls[0], settings=few):
        async with weirpool.serve(service("many"), urls[1], settings=many):
            options: Any = {"strategy": strategy, "settings": Settings(lease=IntervalLease(1, 1.0))}
            async with weirpool.balance(urls, **options) as balancer:
                await asyncio.sleep(0.1)
                await asyncio.gather(*(ask(balancer) for _ in range(10)))
    if answered["many"] < 400:
        breaches.append(f"{strategy}: the node with leases answered {answered['many']} of 500 calls")
    return breaches


def sockets(folder: Path) -> Iterator[str]:
    """Let clients wait in a server's queue while it closes, and successors take its socket or its address."""
    yield from asyncio.run(asyncio.wait_for(_sockets(folder), PATIENCE))


async def _sockets(folder: Path) -> list[str]:
    breaches: list[str] = []
    url = f"rsocket+unix://{folder}/s"
    closing = await weirpool.serve(_named(b"old"), url)
    with _queued(folder / "s") as client:
        await closing.close()
        if not (await _read(client)).endswith(b"the server closes the connection"):
            breaches.append("a client in the queue of a closing server was not rejected")
    old = await weirpool.serve(_named(b"old"), url)
    urls, descriptors = old.hand_over()
    kept = os.dup(descriptors[0])
    with _queued(folder / "s") as client:
        await old.close()
        if not (folder / "s").exists():
            breaches.append("a server that has handed over its socket removed the file")
        async with weirpool.serve(_named(b"new"), urls[0].replace(str(descriptors[0]), str(kept))):
            if b"new" not in await _read(client):
                breaches.append("a client in the queue was not left to the successor")
    os.close(kept)
    (folder / "s").unlink(missing_ok=True)
    old = await weirpool.serve(_named(b"old"), url)
    os.rename(folder / "s", folder / "away")
    async with weirpool.serve(_named(b"new"), url):
        await old.close()
        if not (folder / "s").exists():
            breaches.append("a closing server removed the socket of its successor")
    return breaches


def _named(name: bytes) -> Service:
    service = Service()
    service.call("name")(lambda request: name)
    return service


def _queued(path: Path) -> socket.socket:
    """Return a client that the system has connected; it has sent SETUP and a call."""
    session = RSocketSession.client(Settings(), Payload())
    session.link_up(0.0)
    session.open(Kind.CALL, "name", Payload())
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    client.sendall(b"".join(session.take_output()))
    client.setblocking(False)
    return client


async def _read(client: socket.socket) -> bytes:
    """Return what the client has received when there is nothing more for a while."""
    loop = asyncio.get_running_loop()
    found = b""
    try:
        while piece := await asyncio.wait_for(loop.sock_recv(client, 65_536), 0.2):
            found += piece
    except (TimeoutError, OSError):
        pass
    return found


def certificates(folder: Path) -> Iterator[str]:
    """Renew the files of certificates, also by halves, and ask for the context of the next link."""
    made, other = (Certificates(_fresh(folder, name)) for name in ("one", "two"))
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(reloading, "CHECK_SECONDS", 0.0))
        contexts = server_contexts(parse_url(f"rsocket+tls://localhost:0?{made.server_options}"), None)
        assert contexts is not None
        old = contexts()
        if contexts() is not old:
            yield "unchanged files were read again"
        _copy(other, made, "key.pem")
        try:
            if contexts() is not old:
                yield "half of a pair was used"
        except WeirpoolError:
            yield "half of a pair ended the listener"
        _copy(other, made, "cert.pem")
        if contexts() is old:
            yield "renewed files were not used"


def _fresh(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def _copy(source: Certificates, target: Certificates, name: str) -> None:
    (target.folder / name).write_bytes((source.folder / name).read_bytes())
