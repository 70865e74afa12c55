from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.transports.recording import Place, Recorder
from tests.transports.their_websockets import prefixed
from tests.waiting import turns, until
from weirpool import LimitExceeded, LinkLost, ProtocolError, Settings
from weirpool.settings import DEFAULT_SETTINGS
from weirpool.transports.asgi import AsgiListener
from weirpool.urls import parse_url

RSOCKET = "rsocket+ws://:0"
ANSWERS = {"extensions": {"websocket.http.response": {}}}


class Web:
    """An ASGI server with one WebSocket connection.

    Attributes:
        scope: What the application is told of the request.
        sent: The messages of the application.
        taken: How many messages the application has asked for.
        writable: Cleared while the client does not read.
        failure: What `send` raises, if anything.

    """

    def __init__(self, **scope: Any) -> None:
        self.scope = {"type": "websocket", "client": ("192.0.2.7", 5), "headers": [], "subprotocols": [], **scope}
        self.sent: list[dict[str, Any]] = []
        self.taken = 0
        self.writable = asyncio.Event()
        self.writable.set()
        self.failure: Exception | None = None
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self.feed(type="websocket.connect")

    def feed(self, **message: Any) -> None:
        self._messages.put_nowait(message)

    def message(self, data: bytes) -> None:
        self.feed(type="websocket.receive", bytes=data)

    async def receive(self) -> Any:
        self.taken += 1
        message = await self._messages.get()
        if isinstance(message.get("error"), Exception):
            raise message["error"]
        return message

    async def send(self, message: dict[str, Any]) -> None:
        await self.writable.wait()
        if self.failure is not None:
            raise self.failure
        self.sent.append(message)

    @property
    def types(self) -> list[str]:
        return [message["type"].removeprefix("websocket.") for message in self.sent]


def listening(url: str = RSOCKET, settings: Settings = DEFAULT_SETTINGS) -> tuple[AsgiListener, Place]:
    place = Place()
    return AsgiListener(parse_url(url), place.accept, settings), place


@asynccontextmanager
async def opened(
    url: str = RSOCKET, settings: Settings = DEFAULT_SETTINGS
) -> AsyncIterator[tuple[Web, Recorder, asyncio.Task[None]]]:
    """An open link: its server, its receiver, and the task that serves it."""
    web = Web()
    listener, place = listening(url, settings)
    task = asyncio.create_task(listener.serve(web.scope, web.receive, web.send))
    try:
        receiver = await place.linked()
        yield web, receiver, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_messages_get_their_length_and_lose_it() -> None:
    async with opened() as (web, receiver, _):
        assert web.sent == [{"type": "websocket.accept", "subprotocol": None}]
        web.message(b"one")
        web.message(b"")
        await receiver.has(prefixed(b"one", b""))
        receiver.link.write(prefixed(b"two", b"three")[:6])
        receiver.link.write(prefixed(b"two", b"three")[6:])
        await until(lambda: len(web.sent) == 3)
        assert [message["bytes"] for message in web.sent[1:]] == [b"two", b"three"]
        assert receiver.link.get_write_buffer_size() == 0
        assert receiver.link.progress() == (0, len(prefixed(b"two", b"three")))


async def test_data_without_lengths_is_passed_on_as_it_is() -> None:
    async with opened("reactive-streams+ws://:0") as (web, receiver, _):
        web.message(b"\0\1")
        await receiver.has(b"\0\1")
        receiver.link.write(b"\2")
        await until(lambda: len(web.sent) == 2)
        assert web.sent[1] == {"type": "websocket.send", "bytes": b"\2"}


async def test_client_that_does_not_read_pauses_writing() -> None:
    async with opened(settings=Settings(output_high_bytes=100_000)) as (web, receiver, _):
        web.writable.clear()
        message = prefixed(bytes(10_000))
        while "paused" not in receiver.told:
            receiver.link.write(message)
        held = receiver.link.get_write_buffer_size()
        await turns(20)
        assert 100_000 < held <= 110_100 and receiver.link.get_write_buffer_size() == held
        web.writable.set()
        await receiver.until(lambda: "resumed" in receiver.told)
        await until(lambda: receiver.link.get_write_buffer_size() == 0)


async def test_reading_paused_leaves_messages_with_the_server() -> None:
    async with opened() as (web, receiver, _):
        receiver.link.pause_reading()
        for number in range(10):
            web.message(b"%d" % number)
        await turns(20)
        assert (receiver.data, receiver.link.unread) == (b"", 1)
        # The message that opens the connection, and one more.
        assert web.taken == 2
        receiver.link.resume_reading()
        await receiver.has(prefixed(*(b"%d" % number for number in range(10))))
        assert receiver.link.unread == 0


async def test_close_sends_all_output_first() -> None:
    async with opened() as (web, receiver, task):
        web.writable.clear()
        receiver.link.write(prefixed(b"last"))
        receiver.link.close()
        receiver.link.write(prefixed(b"too late"))
        web.message(b"discarded")
        await turns(5)
        web.writable.set()
        await task
        assert web.sent[1:] == [
            {"type": "websocket.send", "bytes": b"last"},
            {"type": "websocket.close", "code": 1000},
        ]
        assert (receiver.told, receiver.error, receiver.data) == (["made", "lost"], None, b"")


async def test_abort_discards_output() -> None:
    async with opened() as (web, receiver, task):
        web.writable.clear()
        receiver.link.write(prefixed(b"never"))
        await turns(3)
        receiver.link.abort()
        await task
        assert (web.types, receiver.told, receiver.link.is_closing()) == (["accept"], ["made", "lost"], True)


async def test_close_gives_up_on_a_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weirpool.transports.asgi.LINGER", 0.01)
    async with opened() as (web, receiver, task):
        web.writable.clear()
        receiver.link.write(prefixed(b"never"))
        receiver.link.close()
        await task
        assert receiver.told == ["made", "lost"]


@pytest.mark.parametrize("code", [None, 1000, 1001, 1005])
async def test_client_that_closes_is_no_error(code: int | None) -> None:
    async with opened() as (web, receiver, task):
        web.feed(type="websocket.disconnect", code=code)
        await task
        assert (receiver.told, receiver.error) == (["made", "lost"], None)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1006, "the connection ended without a WebSocket closing handshake"),
        (1012, "the peer closed the WebSocket with 1012: 'restarting'"),
    ],
)
async def test_connection_that_breaks_is_a_lost_link(code: int, reason: str) -> None:
    async with opened() as (web, receiver, task):
        web.feed(type="websocket.disconnect", code=code, reason="restarting")
        await task
        assert isinstance(receiver.error, LinkLost) and str(receiver.error) == reason


async def test_servers_own_errors_are_a_lost_link() -> None:
    for raised in ("send", "receive"):
        async with opened() as (web, receiver, task):
            if raised == "send":
                web.failure = RuntimeError("Unexpected ASGI message")
                receiver.link.write(prefixed(b"x"))
            else:
                web.feed(error=ValueError())
            await task
            assert isinstance(receiver.error, LinkLost) and receiver.told == ["made", "lost"]


async def test_server_that_stops_loses_the_link() -> None:
    async with opened() as (_, receiver, task):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(receiver.error, LinkLost)


async def test_text_is_refused() -> None:
    async with opened() as (web, receiver, task):
        web.feed(type="websocket.receive", text="hello", bytes=None)
        await task
        assert web.sent[-1] == {"type": "websocket.close", "code": 1003}
        assert isinstance(receiver.error, ProtocolError)


async def test_message_that_is_too_long_is_refused() -> None:
    settings = Settings(max_frame_bytes=2_000, max_setup_frame_bytes=1_000, fragment_bytes=100)
    for first, second, code in ((1_001, 0, 1009), (1_000, 2_001, 1009), (1_000, 2_000, 1000)):
        async with opened(settings=settings) as (web, receiver, task):
            web.message(bytes(first))
            web.message(bytes(second))
            if code == 1000:
                await receiver.has(prefixed(bytes(first), bytes(second)))
                receiver.link.close()
            await task
            assert web.sent[-1]["code"] == code
            assert isinstance(receiver.error, LimitExceeded) == (code == 1009)


async def test_session_that_skips_long_messages_gets_them() -> None:
    async with opened(
        "river+ws://:0", Settings(max_frame_bytes=2_000, max_setup_frame_bytes=1_000, fragment_bytes=100)
    ) as (web, one, _):
        web.message(bytes(10))
        web.message(bytes(5_000))
        await one.has(b"\0\0\0\x0a" + bytes(10) + (5_000).to_bytes(4, "big") + bytes(5_000))


async def test_scope_is_information_of_the_link() -> None:
    async with opened() as (web, receiver, _):
        assert receiver.link.get_extra_info("asgi_scope") is web.scope
        assert receiver.link.get_extra_info("ssl_object") is None


# Opening requests.


async def served(listener: AsgiListener, **scope: Any) -> Web:
    web = Web(**scope)
    await listener.serve(web.scope, web.receive, web.send)
    return web


@pytest.mark.parametrize(("offered", "chosen"), [([], None), (["rsocket"], "rsocket"), (["x", "rsocket"], "rsocket")])
async def test_subprotocol_is_chosen(offered: list[str], chosen: str | None) -> None:
    listener, place = listening()
    place.came = lambda: None
    web = Web(subprotocols=offered)
    web.feed(type="websocket.disconnect", code=1000)
    await listener.serve(web.scope, web.receive, web.send)
    assert web.sent[0] == {"type": "websocket.accept", "subprotocol": chosen}


async def test_other_subprotocol_is_refused() -> None:
    listener, place = listening()
    web = await served(listener, subprotocols=["graphql"], **ANSWERS)
    assert web.sent[0]["status"] == 400 and b"'rsocket'" in web.sent[1]["body"]
    assert place.accepted == []


@pytest.mark.parametrize("answers", [ANSWERS, {}])
async def test_page_of_another_origin_is_refused(answers: Any, caplog: pytest.LogCaptureFixture) -> None:
    listener, place = listening()
    headers = [(b"host", b"api.example"), (b"origin", b"https://evil.example")]
    web = await served(listener, headers=headers, **answers)
    assert place.addresses == []
    assert caplog.messages == [
        "192.0.2.7 refused: pages of https://evil.example may not connect; allow them with Settings.origins or --origin"
    ]
    if answers:
        assert web.sent[0]["status"] == 403
        assert web.sent[1]["body"] == b"this server does not accept connections from this origin.\n"
    else:
        assert web.types == ["close"] and web.sent[0]["code"] == 1008


async def test_page_of_a_listed_origin_is_accepted() -> None:
    listener, place = listening(settings=Settings(origins=("https://app.example",)))
    web = Web(headers=[(b"host", b"api.example"), (b"origin", b"https://app.example")])
    web.feed(type="websocket.disconnect", code=1000)
    await listener.serve(web.scope, web.receive, web.send)
    assert web.types[0] == "accept" and len(place.accepted) == 1


async def test_full_and_closing_servers_say_so() -> None:
    listener, place = listening()
    place.refusing = True
    web = await served(listener, **ANSWERS)
    assert (web.sent[0]["status"], web.sent[1]["body"]) == (503, b"the server is full.\n")
    await listener.close()
    web = await served(listener, **ANSWERS)
    assert (web.sent[0]["status"], web.sent[1]["body"]) == (503, b"the server is closing.\n")


async def test_address_is_that_of_the_client_behind_a_trusted_proxy() -> None:
    listener, place = listening(settings=Settings(trusted_proxies=("192.0.2.0/24",)))
    web = Web(headers=[(b"x-forwarded-for", b"203.0.113.9")])
    web.feed(type="websocket.disconnect", code=1000)
    await listener.serve(web.scope, web.receive, web.send)
    assert place.addresses == ["203.0.113.9"]
    web = await served(listener, headers=[(b"x-forwarded-for", b"nonsense")], **ANSWERS)
    assert web.sent[0]["status"] == 400


async def test_link_that_gives_its_place_up_is_closed() -> None:
    listener, place = listening()
    web = Web()
    web.writable.clear()
    task = asyncio.create_task(listener.serve(web.scope, web.receive, web.send))
    receiver = await place.next()
    hang_up = place.hang_ups[0]
    assert hang_up is not None
    hang_up("another one needs it")
    web.writable.set()
    await task
    assert web.types == ["accept", "close"] and receiver.told == ["made", "lost"]


async def test_link_that_is_lost_before_it_is_made_is_reported() -> None:
    listener, place = listening()
    web = Web()
    web.failure = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        await listener.serve(web.scope, web.receive, web.send)
    [receiver] = place.accepted
    assert receiver.told == ["lost"] and isinstance(receiver.error, LinkLost)


async def test_end_waits_for_links_and_aborts_the_rest() -> None:
    listener, place = listening()
    web = Web()
    task = asyncio.create_task(listener.serve(web.scope, web.receive, web.send))
    await place.linked()
    assert listener.hand_over() == []
    await listener.close()
    await listener.ended(0.01)
    assert task.done() or place.accepted[0].told == ["made", "lost"]
    await task
