"""Servers in processes of their own are replaced under load: no call fails, and no stream.

Each way to replace them is tried over each protocol and transport. A server whose address stays open, because a parent
or the successor has its socket, needs no other one beside it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import weirpool
from tests.rolling.laboratory import HOW, Load, Node, url_of
from weirpool import Reconnect

ROUNDS = 2
QUICK = Reconnect(first_delay=0.01, longest_delay=0.05)
TRANSPORTS = ("tcp", "tls", "unix", "ws", "wss", "h2c", "h2")
CASES = [
    *(("rsocket", transport, how) for how in HOW for transport in TRANSPORTS),
    *(
        (protocol, transport, how)
        for how in ("rebound", "handed over")
        for protocol, transport in (
            ("reactivesocket-0.2", "tcp"),
            ("reactivesocket-0.0", "tcp"),
            ("reactive-streams", "tcp"),
            ("reactive-streams", "wss"),
            ("river", "ws"),
            ("river", "tcp"),
        )
    ),
    ("rsocket", "quic", "rebound"),
    ("river", "quic", "rebound"),
]
QUICK_CASES = {("rsocket", "tcp", how) for how in HOW}


def mark(case: tuple[str, str, str]) -> object:
    return pytest.param(*case, marks=[] if case in QUICK_CASES else [pytest.mark.slow])


@asynccontextmanager
async def started(*nodes: Node) -> AsyncIterator[None]:
    try:
        await asyncio.gather(*(node.start() for node in nodes))
        yield
        await asyncio.gather(*(node.stop() for node in nodes))
    finally:
        for node in nodes:
            node.kill()


@pytest.mark.parametrize(("protocol", "transport", "how"), [mark(case) for case in CASES])
async def test_no_call_and_no_stream_fails_while_nodes_are_replaced(
    protocol: str, transport: str, how: str, tmp_path: Path
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    servers, options = zip(*(url_of(protocol, transport, tmp_path / name) for name in "ab"), strict=True)
    nodes = [Node(url, how) for url in servers]
    async with started(*nodes):
        urls = [node.url.partition("?")[0] + option for node, option in zip(nodes, options, strict=True)]
        async with weirpool.balance(urls, reconnect=QUICK) as balancer:
            load = Load(balancer, *nodes)
            await load.more()
            for _ in range(ROUNDS):
                for node in nodes:
                    await node.replace()
                    await load.more()
            await load.end()
    assert load.failures == []
    assert sum((node.started for node in nodes), Counter()) == load.answered


@pytest.mark.parametrize("how", HOW[1:])
@pytest.mark.parametrize("transport", ["tcp", pytest.param("unix", marks=pytest.mark.slow)])
async def test_single_server_is_replaced_without_a_failure(transport: str, how: str, tmp_path: Path) -> None:
    url, _ = url_of("rsocket", transport, tmp_path)
    node = Node(url, how)
    async with started(node):
        async with weirpool.connect(node.url.partition("?")[0], reconnect=QUICK) as peer:
            load = Load(peer, node)
            await load.more()
            for _ in range(ROUNDS):
                await node.replace()
                await load.more()
            await load.end()
    assert load.failures == []
    assert node.started == load.answered
