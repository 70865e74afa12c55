"""River over real sockets: late input of an old connection after a new one has replaced it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weirpool
from tests.waiting import until
from weirpool import Items, Payload, Settings
from weirpool.wire.framing import framed
from weirpool.wire.river.values import decode_value, encode_value

# No timeouts and no heartbeats here.
PATIENT = Settings(heartbeat_interval=60.0, session_grace=60.0)


class Client:
    """A hand-written client with any number of connections.

    Attributes:
        heard: The bodies of the received results, in order, without repetitions.

    """

    def __init__(self, url: str, codec: str) -> None:
        self.port = int(url.rsplit(":", 1)[1].partition("?")[0])
        self.codec = codec
        self.ack = 0
        self.heard: list[Any] = []

    @asynccontextmanager
    async def link(self, sent: int = 0) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Connect and do the handshake."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            state = {"nextExpectedSeq": self.ack, "nextSentSeq": sent}
            payload = {"type": "HANDSHAKE_REQ", "protocolVersion": "v2.0", "sessionId": "session-late"}
            writer.write(self.message(0, "hs", 0, {**payload, "expectedSessionState": state}))
            answer = await self.read(reader)
            assert answer["payload"]["status"]["ok"], answer
            if self.ack == 0:
                greeting = await self.read(reader)
                assert (greeting["streamId"], greeting["seq"]) == ("heartbeat", 0)
                self.ack = 1
            yield reader, writer
        finally:
            writer.close()

    def message(self, seq: int, stream: str, flags: int, payload: object, route: str = "") -> bytes:
        fields: dict[str, object] = {"id": f"m{seq}", "from": "late", "to": "SERVER", "seq": seq, "ack": self.ack}
        fields |= {"streamId": stream, "controlFlags": flags, "payload": payload}
        if route:
            fields["serviceName"], _, fields["procedureName"] = route.partition(".")
        return framed(encode_value(fields, self.codec))

    async def read(self, reader: asyncio.StreamReader) -> Any:
        size = int.from_bytes(await reader.readexactly(4), "big")
        return decode_value(await reader.readexactly(size), self.codec)

    async def hear(self, reader: asyncio.StreamReader, count: int) -> None:
        """Read until this many results were received in total."""
        while len(self.heard) < count:
            message = await self.read(reader)
            if message["seq"] == self.ack:
                self.ack += 1
                self.heard.append(message["payload"]["payload"])


def make_service(seen: list[object], codec: str) -> weirpool.Service:
    service = weirpool.Service()

    @service.upload("demo.note")
    async def note(request: Payload, items: Items) -> bytes:
        seen.extend([decode_value(item.data, codec) async for item in items])
        return encode_value("noted", codec)

    return service


@pytest.mark.parametrize("part", [0, 1, 3, 4, 5, 40, -20, -1, None])
@pytest.mark.parametrize("codec", ["json", "msgpack"])
async def test_what_an_old_link_brings_late_is_not_heard(codec: str, part: int | None) -> None:
    seen: list[object] = []
    url = f"river+tcp://127.0.0.1:0?codec={codec}"
    async with weirpool.serve(make_service(seen, codec), url, settings=PATIENT) as server:
        client = Client(server.urls[0], codec)
        item = {type: client.message(1, "s", 0, {"n": type}) for type in ("old", "new")}
        async with client.link() as (_, old):
            old.write(client.message(0, "s", 2, {}, "demo.note"))
            # The end of the message arrives after the new connection; None: the whole message does.
            old.write(b"" if part is None else item["old"][:part])
            await old.drain()
            session: Any
            [session] = server._drivers
            await until(lambda: session.sequence.ack == 1)
            async with client.link(sent=1) as (reader, new):
                old.write(item["old"] if part is None else item["old"][part:])
                old.write(client.message(2, "s", 8, {"type": "CLOSE"}))
                new.write(item["new"])
                # A repetition has no effect.
                new.write(item["new"] + client.message(2, "s", 0, {"n": 2}) * 2)
                new.write(client.message(3, "s", 8, {"type": "CLOSE"}))
                await client.hear(reader, 1)
        assert client.heard == ["noted"]
        assert seen == [{"n": "new"}, {"n": 2}]


async def test_an_old_link_that_still_hears_does_not_hear_what_is_for_the_new_one() -> None:
    seen: list[object] = []
    async with weirpool.serve(make_service(seen, "json"), "river+tcp://127.0.0.1:0", settings=PATIENT) as server:
        client = Client(server.urls[0], "json")
        async with client.link() as (old_reader, old):
            old.write(client.message(0, "s", 2, {}, "demo.note"))
            await old.drain()
            session: Any
            [session] = server._drivers
            await until(lambda: session.sequence.ack == 1)
            async with client.link(sent=1) as (reader, new):
                new.write(client.message(1, "s", 8, {"type": "CLOSE"}))
                await client.hear(reader, 1)
                # It is closed and has delivered nothing.
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await client.read(old_reader)
        assert client.heard == ["noted"]
