"""Messages of a page, also of one that misbehaves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import weirpool
from tests.reflection.quotes import KINDS, service
from weirpool import Settings
from weirpool.tryit.conversation import MAX_RUNNING, Conversation, Place
from weirpool.tryit.target import State, Target

URL = "rsocket+memory://talk"


class Talk:
    """A conversation, and what it has reported."""

    def __init__(self, peer: weirpool.Peer | None) -> None:
        self.messages: list[dict[str, Any]] = []
        self._ended = asyncio.Event()
        target = Target(lambda hook: weirpool.connect(URL, on_connection=hook))
        if peer is not None:
            target.peer, target.state = peer, State.CONNECTED
        self.target = target
        self.page = Conversation(target, Place(URL, options=("--data-mime", "application/json")), self._report)

    async def _report(self, message: dict[str, Any]) -> None:
        # As it is sent: it can be written as JSON.
        self.messages.append(message)
        if message["type"] == "end":
            self._ended.set()

    async def say(self, **fields: Any) -> None:
        await self.page.received(json.dumps(fields))

    async def end(self) -> dict[str, Any]:
        await self._ended.wait()
        return self.messages[-1]


async def test_a_request_from_start_to_end() -> None:
    async with weirpool.serve(service, URL), weirpool.connect(URL) as peer:
        talk = Talk(peer)
        await talk.say(op="start", id="r1", kind="stream", route="numbers", data="2", demand=5)
        end = await talk.end()
    items = [item["text"] for each in talk.messages if each["type"] == "items" for item in each["items"]]
    assert items == ["0", "1"] and (end["id"], end["how"], end["received"]) == ("r1", "completed", 2)


async def test_cancel_and_close_end_requests() -> None:
    settings = Settings(data_mime="application/json")
    async with weirpool.serve(service, URL), weirpool.connect(URL, settings=settings) as peer:
        talk = Talk(peer)
        live = {"op": "start", "kind": "stream", "route": "quotes.live", "data": '{"name": "A"}'}
        await talk.say(**live, id="r1")
        await talk.say(op="cancel", id="r1")
        assert (await talk.end())["how"] == "canceled"
        await talk.say(**live, id="r2")
        await talk.page.close()
        assert (talk.messages[-1]["id"], talk.messages[-1]["how"]) == ("r2", "canceled")


async def test_what_cannot_be_done_is_said() -> None:
    talk = Talk(None)
    await talk.say(op="start", id="r1", kind="call", route="x")
    assert "there is no connection" in talk.messages[-1]["message"]
    await talk.say(op="start", id="r2", kind="what", route="x")
    assert "no kind 'what'" in talk.messages[-1]["message"]
    await talk.page.received("{")
    await talk.page.received('{"op": 5}')
    assert [each["type"] for each in talk.messages[-2:]] == ["refused", "refused"]
    before = len(talk.messages)
    await talk.say(op="item", id="unknown", data="x")
    assert len(talk.messages) == before


async def test_requests_at_once_are_limited() -> None:
    settings = Settings(data_mime="application/json")
    async with weirpool.serve(service, URL), weirpool.connect(URL, settings=settings) as peer:
        talk = Talk(peer)
        for number in range(MAX_RUNNING + 1):
            await talk.say(op="start", id=f"r{number}", kind="stream", route="quotes.live", data='{"name": "A"}')
        assert f"{MAX_RUNNING} requests are running" in (await talk.end())["message"]
        await talk.page.close()


async def test_items_are_refused_with_the_reason() -> None:
    async with weirpool.serve(service, URL), weirpool.connect(URL) as peer:
        talk = Talk(peer)
        await talk.say(op="start", id="r1", kind="upload", route="none")
        for _ in range(200):
            await talk.say(op="item", id="r1", data="x")
        assert any("has not taken" in each.get("message", "") for each in talk.messages)
        await talk.page.close()


async def test_texts_to_copy() -> None:
    talk = Talk(None)
    await talk.say(op="copy", id="", kind="call", route="echo", data="it's")
    copied = talk.messages[-1]
    assert copied["command"] == f"""weirpool call {URL} echo -d 'it'"'"'s' --data-mime application/json"""
    assert "peer.call('echo', \"it's\")" in copied["python"]


async def test_tells_what_the_server_offers() -> None:
    async with weirpool.serve(service, URL, settings=Settings(reflection=True)), weirpool.connect(URL) as peer:
        talk = Talk(peer)
        await talk.say(op="describe")
    told = talk.messages[-1]
    assert (told["state"], told["url"]) == ("connected", URL)
    assert len(told["description"].routes) == len(told["signatures"]) == len(KINDS)


async def test_what_is_copied_has_a_known_kind() -> None:
    talk = Talk(None)
    await talk.say(op="copy", kind="call; touch x #", route="a")
    assert talk.messages[-1]["type"] == "refused" and "there is no kind" in talk.messages[-1]["message"]


async def test_a_text_that_no_command_can_have_is_in_the_program() -> None:
    talk = Talk(None)
    await talk.say(op="copy", kind="call", route="a", data="a\0b")
    copied = talk.messages[-1]
    assert "command" not in copied and "NUL" in copied["refused"] and "'a\\x00b'" in copied["python"]
