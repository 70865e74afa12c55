"""Whoever stops whenever they like: calls and streams that are given up at any moment never end their session."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.builds import Build
from tests.waiting import turns, until

PLACES = {
    "rsocket": {"call", "fire", "stream", "channel", "upload"},
    "reactivesocket-0.2": {"call", "fire", "stream", "channel", "upload"},
    "reactivesocket-0.0": {"call", "fire", "stream"},
    "river": {"call", "stream", "channel", "upload"},
    "reactive-streams": {"call", "stream"},
}
"""What each protocol can carry."""
WATCHED = ["plain", "watched", "admitted"]
STORED = ["rsocket", "reactivesocket-0.2"]
WORLDS = [(protocol, watched) for protocol in PLACES for watched in WATCHED] + [(each, "stored") for each in STORED]
TASKS = 40
SEEDS = 6
ITEM = b"1"


class Crowd:
    """Clients' tasks that do anything, and give it up at any moment; and the handlers that answer them.

    Everything random comes from one seed.
    """

    def __init__(self, build: Build, protocol: str, seed: int) -> None:
        self.weirpool = build.module("weirpool")
        self.kinds = sorted(PLACES[protocol])
        self.rng = random.Random(seed)
        self.failures: list[BaseException] = []

    async def pause(self) -> None:
        await turns(self.rng.choice((0, 0, 1, 2, 5)))

    async def items(self) -> AsyncIterator[bytes]:
        for _ in range(self.rng.randrange(12)):
            await self.pause()
            yield ITEM
        if self.rng.random() < 0.2:
            raise self.weirpool.ApplicationError(0x301, "the source is dry")

    def source(self) -> Any:
        return self.items() if self.rng.random() < 0.5 else [ITEM] * self.rng.randrange(12)

    def service(self) -> Any:
        service = self.weirpool.Service()

        async def answer(request, items=()):
            await self.pause()
            if self.rng.random() < 0.2:
                raise self.weirpool.ApplicationError(0x301, "no")
            return request

        async def take(request, items):
            most = self.rng.randrange(12)
            async for _ in items:
                most -= 1
                if most < 0:
                    break
            return await answer(request)

        async def both(request, items) -> AsyncIterator[bytes]:
            most = self.rng.randrange(12)
            async for _ in items:
                yield ITEM
                most -= 1
                if most < 0:
                    break
            async for item in self.items():
                yield item

        service.call("r.slow")(answer)
        service.call("r.quick")(lambda request: request)
        service.fire("r.fire")(answer)
        service.stream("r.slow")(lambda request: self.items())
        service.stream("r.quick")(lambda request: [ITEM] * self.rng.randrange(600))
        service.upload("r.slow")(take)
        service.upload("r.quick")(lambda request, items: request)
        service.channel("r.slow-channel")(both)
        service.channel("r.quick-channel")(lambda request, items: [ITEM] * self.rng.randrange(20))
        return service

    async def act(self, peer: Any) -> None:
        kind, route = self.rng.choice(self.kinds), self.rng.choice(("r.slow", "r.quick", "r.nobody"))
        if kind == "call":
            await peer.call(route, ITEM)
        elif kind == "fire":
            await peer.fire("r.fire", ITEM)
        elif kind == "upload":
            await peer.upload(route, ITEM, self.source())
        else:
            credit = self.rng.choice((None, 1, 3))
            outgoing = [self.source()] if kind == "channel" else []
            most = self.rng.randrange(10)
            async with getattr(peer, kind)(
                route + "-channel" * len(outgoing), ITEM, *outgoing, credit=credit
            ) as stream:
                async for _ in stream:
                    await self.pause()
                    most -= 1
                    if most < 0:
                        break

    async def give_up(self, peer: Any) -> None:
        """Do something, and stop it after some turns of the loop, if it takes that long."""
        task = asyncio.create_task(self.act(peer))
        await turns(self.rng.choice((0, 1, 2, 3, 4, 6, 9, 15, 1_000)))
        task.cancel()
        [result] = await asyncio.gather(task, return_exceptions=True)
        # What a handler raised, or an end that came first.
        harmless = (asyncio.CancelledError, self.weirpool.ApplicationError)
        if isinstance(result, BaseException) and not isinstance(result, harmless):
            self.failures.append(result)

    async def play(self, peer: Any, disturb: Callable[[], None]) -> None:
        tasks = []
        for _ in range(TASKS):
            tasks.append(asyncio.create_task(self.give_up(peer)))
            await self.pause()
            if self.rng.random() < 0.05:
                disturb()
        await asyncio.gather(*tasks)


def options(build: Build, watched: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a server, and what a client, is made with."""
    weirpool = build.module("weirpool")
    server: dict[str, Any] = {"settings": weirpool.Settings()}
    client: dict[str, Any] = {}
    if watched == "watched":

        class Tap(weirpool.Tap):  # type: ignore[misc, name-defined]
            """Takes note of nothing."""

        @asynccontextmanager
        async def hook(connection: Any) -> AsyncIterator[None]:
            await turns(3)
            yield

        both = {"taps": [Tap()], "on_connection": hook}
        server |= both
        client |= both
    elif watched == "admitted":

        async def acceptor(setup: Any) -> None:
            await turns(20)

        server["acceptor"] = acceptor
    elif watched == "stored":
        server["settings"] = weirpool.Settings(resume_store=str(folder))
        client["settings"] = weirpool.Settings(resume=True)
    return server, client


@pytest.mark.parametrize(("protocol", "watched"), WORLDS)
async def test_giving_up_at_any_moment_ends_no_session(
    build: Build, protocol: str, watched: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # THREATS 96
    weirpool = build.module("weirpool")
    for seed in range(SEEDS):
        crowd = Crowd(build, protocol, seed)
        for_server, for_client = options(build, watched, tmp_path)
        url = f"{protocol}+memory://ownership"
        async with weirpool.serve(crowd.service(), url, **for_server) as server:
            connecting = weirpool.connect(url, reconnect=False, **for_client)
            async with connecting as peer:

                def cut(server: Any = server) -> None:
                    if watched == "stored":
                        for driver in server._drivers.values():
                            if driver.link is not None:
                                driver.link.abort()

                await crowd.play(peer, cut)
                assert not peer.closed, seed
                await until(lambda peer=peer: peer.outstanding == 0)
        assert crowd.failures == [], seed
    assert [record.getMessage() for record in caplog.records if "without an owner" in record.getMessage()] == []
