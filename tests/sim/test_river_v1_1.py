"""Clients of River v1.1, in which the bit 4 closes a stream and no bit cancels it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import weirpool
from tests.river.peers import Raw, body_of
from tests.waiting import until
from weirpool import ApplicationError, Payload, Service, Settings
from weirpool.events import Canceled, Completed, ItemReceived, Requested
from weirpool.kinds import Kind
from weirpool.wire.river.codec import CODECS
from weirpool.wire.river.message import Message
from weirpool.wire.river.values import decode_value, encode_value

CLOSE = {"type": "CLOSE"}
ADD, SUM, COUNT, ECHO = ({"serviceName": "demo", "procedureName": name} for name in ("add", "sum", "count", "echo"))


@pytest.fixture(params=["json", "msgpack"])
def old(request: pytest.FixtureRequest) -> Raw:
    raw = Raw(request.param, Settings(river_v1_1=True))
    (answer,) = raw.shake(protocolVersion="v1.1")
    assert body_of(answer, raw.codec)["status"]["ok"]
    raw.events.clear()
    return raw


def value(raw: Raw, value: object) -> Payload:
    return Payload(encode_value(value, raw.codec))


def summary(raw: Raw, said: list[Message]) -> list[tuple[str, int, Any]]:
    return [(each.stream_id, int(each.control_flags), body_of(each, raw.codec)) for each in said]


def test_an_rpc(old: Raw) -> None:
    old.say("s", 6, {"a": 1}, **ADD)
    (asked,) = old.events
    assert isinstance(asked, Requested) and (asked.kind, asked.done) == (Kind.CALL, True)
    old.session.send(1, value(old, 3), True)
    assert summary(old, old.said()) == [("s", 4, {"ok": True, "payload": 3})]
    assert old.session.open_streams == 0


def test_an_rpc_that_fails(old: Raw) -> None:
    for number, (error, code) in enumerate(
        [(ApplicationError("NO", "m"), "NO"), (KeyError("secret"), "UNCAUGHT_ERROR")], 1
    ):
        old.say(f"s{number}", 6, {}, **ADD)
        old.session.fail(number, error)
        ((_, flags, body),) = summary(old, old.said())
        assert flags == 4 and body["ok"] is False and body["payload"]["code"] == code


def test_an_upload(old: Raw) -> None:
    old.say("s", 2, {"start": 1}, **SUM)
    old.session.request(1, 10)
    old.say("s", 0, {"n": 1})
    old.say("s", 4, CLOSE)
    assert [type(event) for event in old.events] == [Requested, ItemReceived, Completed]
    old.session.send(1, value(old, 2), True)
    assert summary(old, old.said()) == [("s", 4, {"ok": True, "payload": 2})]
    assert old.session.open_streams == 0


def test_a_stream_closes_half_by_half(old: Raw) -> None:
    old.say("s", 2, {}, **ECHO)
    old.session.request(1, 10)
    old.say("s", 0, {"msg": "a"})
    old.session.send(1, value(old, "a"))
    assert summary(old, old.said()) == [("s", 0, {"ok": True, "payload": "a"})]
    old.say("s", 4, CLOSE)
    assert old.session.open_streams == 1
    old.session.send(1, value(old, "b"))
    old.session.complete(1)
    assert summary(old, old.said()) == [("s", 0, {"ok": True, "payload": "b"}), ("s", 4, CLOSE)]
    assert old.session.open_streams == 0
    assert not any(isinstance(event, Canceled) for event in old.events)


def test_the_last_item_may_close(old: Raw) -> None:
    old.say("s", 2, {}, **SUM)
    old.session.request(1, 10)
    old.say("s", 4, {"n": 1})
    assert isinstance(old.events[-1], ItemReceived) and old.events[-1].done


def test_a_subscription_that_its_server_ends(old: Raw) -> None:
    for number, flags in ((1, 2), (2, 6)):
        old.say(f"s{number}", flags, {}, **COUNT)
        old.session.send(number, value(old, 0))
        old.session.complete(number)
        assert summary(old, old.said()) == [(f"s{number}", 0, {"ok": True, "payload": 0}), (f"s{number}", 4, CLOSE)]
    assert old.session.open_streams == 0
    # Later messages of its client are ignored.
    assert old.say("s1", 4, CLOSE) == []


def test_a_subscription_that_its_client_ends(old: Raw) -> None:
    old.say("s", 2, {}, **COUNT)
    assert summary(old, old.say("s", 4, CLOSE)) == [("s", 4, CLOSE)]
    assert isinstance(old.events[-1], Canceled) and old.session.open_streams == 0


def test_heartbeats_and_reconnects_are_the_same(old: Raw) -> None:
    old.say("s", 2, {}, **ECHO)
    assert old.say("hb", 1, {"type": "ACK"}) == []
    session = old.session
    session.send(1, value(old, "a"))
    session.link_down(old.now, None)
    old.link()
    answer, again = old.shake(protocolVersion="v1.1", expected=1, sent=2)
    assert body_of(answer, old.codec)["status"]["ok"] and old.session is session
    assert (again.stream_id, again.seq, again.control_flags) == ("s", 1, 0)


@pytest.mark.parametrize("version", ["v1", "v0", "v1.2"])
def test_still_older_ones_are_refused(version: str) -> None:
    raw = Raw(settings=Settings(river_v1_1=True))
    (answer,) = raw.shake(protocolVersion=version)
    assert body_of(answer)["status"]["code"] == "PROTOCOL_VERSION_MISMATCH"


def test_others_keep_their_flags_beside_them() -> None:
    raw = Raw(settings=Settings(river_v1_1=True))
    raw.shake()
    raw.say("s", 2, {}, **ECHO)
    raw.say("s", 4, {"ok": False, "payload": {"code": "CANCEL", "message": "m"}})
    assert isinstance(raw.events[-1], Canceled)


@pytest.mark.parametrize("codec", ["json", "msgpack"])
async def test_with_a_whole_server(codec: str) -> None:
    service, ended = Service(), asyncio.Event()

    @service.call("demo.add")
    def add(request: Payload) -> Payload:
        return request

    @service.stream("demo.count")
    async def count(request: Payload) -> AsyncIterator[Payload]:
        try:
            yield request
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    seq = 0
    url = f"river+tcp://127.0.0.1:0?codec={codec}"
    async with weirpool.serve(service, url, settings=Settings(river_v1_1=True, heartbeat_interval=60.0)) as server:
        port = int(server.urls[0].partition("?")[0].rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        def say(stream: str, flags: int, payload: object, **fields: object) -> None:
            nonlocal seq
            whole = {"id": "m", "from": "old", "to": "S", "seq": seq, "ack": 0, "streamId": stream}
            data = encode_value(whole | {"controlFlags": flags, "payload": payload} | fields, codec)
            seq += fields.get("serviceName") is not None or stream != "hs"
            writer.write(len(data).to_bytes(4, "big") + data)

        async def heard() -> tuple[str, int, Any]:
            size = int.from_bytes(await reader.readexactly(4), "big")
            message = CODECS[codec].decode(await reader.readexactly(size))
            return message.stream_id, message.control_flags, decode_value(message.payload, codec)

        state = {"expectedSessionState": {"nextExpectedSeq": 0}}
        say("hs", 0, {"type": "HANDSHAKE_REQ", "protocolVersion": "v1.1", "sessionId": "s", **state})
        assert (await heard())[2]["status"]["ok"]
        assert await heard() == ("heartbeat", 1, {"type": "ACK"})
        say("a", 6, {"a": 1}, **ADD)
        assert await heard() == ("a", 4, {"ok": True, "payload": {"a": 1}})
        say("b", 2, {"upto": 1}, **COUNT)
        assert await heard() == ("b", 0, {"ok": True, "payload": {"upto": 1}})
        say("b", 4, CLOSE)
        assert await heard() == ("b", 4, CLOSE)
        await ended.wait()
        writer.close()
        await until(lambda: not server.peers or server.peers[0].outstanding == 0)
