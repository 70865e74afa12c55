from __future__ import annotations

from typing import Any, cast

import pytest

from penstock import Balancer, Kind, LocalError, Metadata, Payload, Peer, Settings
from penstock.aio.asking import Asking
from penstock.aio.driver import Driver
from penstock.aio.intercepted import InterceptedPeer
from penstock.aio.reconnecting import LastingPeer
from penstock.aio.streams import NoDriver, Stream, Wanted


class Asked(Asking):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.noted: list[tuple[Any, ...]] = []

    async def _ask(self, *arguments: Any) -> Any:
        self.noted.append(arguments)
        return Payload(b"answer")

    def _stream(self, wanted: Wanted) -> Stream:
        self.noted.append(wanted)
        return Stream(cast(Driver, NoDriver(Settings())), wanted)


async def test_what_is_asked_for_is_one_request_whatever_it_came_as() -> None:
    asked = Asked()
    for data in (b"data", "data", Payload(b"data")):
        assert (await asked.call("route", data)).data == b"answer"
        await asked.fire("route", data)
        await asked.upload("route", data, [b"more"])
    ones = [(Kind.CALL, None), (Kind.FIRE, None), (Kind.UPLOAD, [b"more"])]
    assert asked.noted == [(kind, "route", Payload(b"data"), False, outgoing) for kind, outgoing in ones] * 3


def test_what_a_stream_is_asked_for_with_is_handed_on() -> None:
    asked = Asked()
    pushed: list[bytes] = []
    asked.stream("route", b"data", credit=3, manual=True, endless=True, on_push=pushed.append)
    asked.channel("route", b"data", [b"more"], credit=4)
    assert asked.noted == [
        (Kind.STREAM, "route", Payload(b"data"), False, 3, True, None, True, pushed.append),
        (Kind.CHANNEL, "route", Payload(b"data"), False, 4, False, [b"more"], False, None),
    ]
    with pytest.raises(LocalError, match="at least 1"):
        asked.stream("route", credit=0)


async def test_metadata_may_hold_the_route() -> None:
    asked = Asked()
    await asked.call("route", b"data", metadata=b"beside")
    await asked.call("route", b"data", metadata=Metadata())
    await asked.call("route", Payload(b"data", b"own"), metadata=b"beside")
    assert asked.noted == [
        (Kind.CALL, "route", Payload(b"data", b"beside"), False, None),
        (Kind.CALL, "route", Payload(b"data", Metadata().addressed("route")), True, None),
        (Kind.CALL, "route", Payload(b"data", b"own"), False, None),
    ]


@pytest.mark.parametrize("who", [Peer, LastingPeer, InterceptedPeer, Balancer])
def test_all_are_asked_in_the_same_way(who: type[Asking]) -> None:
    assert issubclass(who, Asking)
    for name in ("call", "fire", "stream", "channel", "upload"):
        assert getattr(who, name) is getattr(Asking, name)
