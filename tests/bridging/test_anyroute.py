from __future__ import annotations

from typing import Any

import weirpool
from weirpool import Payload
from weirpool.aio.handlers import Next, Request
from weirpool.bridging.anyroute import AnyRoute
from weirpool.kinds import ANY, Kind


async def test_every_route_and_kind_is_answered() -> None:
    async def answer(request: Request, next: Next) -> Any:
        text = f"{request.kind.name} {request.route}"
        if request.connection.protocol == "river":
            text = f'"{text}"'
        return _one(text) if request.kind.answers_items else Payload(text)

    async def _one(text: str) -> Any:
        yield text

    service = AnyRoute(lambda route: Kind.CALL if route == "a.call" else ANY, answer)
    # River does not tell a call from a stream: an unknown route is a stream, or a channel if items may follow.
    async with weirpool.serve(service, "river+memory://any"), weirpool.connect("river+memory://any") as peer:
        expected = {"a.call": "CALL a.call", "a.b": "STREAM a.b"}
        for route, text in expected.items():
            assert (await weirpool.typed(peer).call(route)) == text
        stream = weirpool.typed(peer).channel("a.c", {}, [])
        assert [item async for item in stream] == ["CHANNEL a.c"]
    async with weirpool.serve(service, "rsocket+memory://any"), weirpool.connect("rsocket+memory://any") as peer:
        assert (await peer.call("x")).data == b"CALL x"
        assert [item.data async for item in peer.stream("y")] == [b"STREAM y"]
        assert [item.data async for item in peer.channel("z", b"", [])] == [b"CHANNEL z"]
