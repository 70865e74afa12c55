"""Links whose session is not known yet."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.aio.fakes import FakeLink
from tests.waiting import until
from weirpool import Settings
from weirpool.aio.arrivals import Arrival
from weirpool.aio.limits import Limits
from weirpool.ledger import LEDGER
from weirpool.protocols import client_session, detectors
from weirpool.tap import Refusal, RefusalCause
from weirpool.transports import Discard


class Place:
    """A server that only notes what arrives."""

    def __init__(self, tapped: bool = False) -> None:
        self.tapped = tapped
        self.found: list[Any] = []
        self.gone: list[str] = []

    def arrived(self, arrival: Arrival, session: Any, link: Any) -> None:
        self.found.append((session, link))

    def evicted(self, arrival: Arrival, reason: str) -> None:
        self.gone.append(reason)

    def lost(self, arrival: Arrival, reason: str) -> None:
        self.gone.append(reason)


def arrive(place: Place, refusal: str = "", protocol: str = "rsocket", **fields: int) -> tuple[Arrival, FakeLink]:
    settings = Settings(**fields)  # type: ignore[arg-type]
    arrival = Arrival(place, Limits(settings), detectors(protocol, settings)(), "192.0.2.7", protocol, None, refusal)
    # However slow this machine is, nothing waits for its turn.
    arrival._turns.clock = lambda: 0.0
    link = FakeLink()
    arrival.link_made(link)
    return arrival, link


async def test_first_message_tells_the_session() -> None:
    place = Place(tapped=True)
    arrival, link = arrive(place)
    client = client_session("rsocket", Settings())
    client.link_up(0.0)
    hello = b"".join(client.take_output())
    arrival.received(hello[:7])
    assert place.found == []
    arrival.received(hello[7:])
    assert [found for _, found in place.found] == [link]
    # Taps see what was read before there was a session.
    assert arrival.read == [hello[:7], hello[7:]]
    assert place.gone == []


async def test_junk_closes_the_link_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    place = Place()
    arrival, link = arrive(place)
    with caplog.at_level(logging.WARNING, "weirpool.aio"):
        arrival.received(b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n")
    assert link.told == ["close"]
    assert isinstance(link.receiver, Discard)
    assert len(place.gone) == 1
    assert "192.0.2.7 refused" in caplog.text
    assert arrival.read == []


async def test_link_that_is_lost_is_reported() -> None:
    place = Place()
    arrival, _ = arrive(place)
    arrival.link_lost(None)
    assert place.gone == ["the link was closed before its first message was complete"]
    assert arrival._timer is None


async def test_incomplete_first_message_is_counted_and_pays() -> None:
    # THREATS 86, 87
    place = Place()
    arrival, link = arrive(place, protocol="river", max_identity_bytes=1_000)
    arrival.received((600).to_bytes(4, "big") + bytes(396))
    link.unfinished = 50
    arrival.received(bytes(100))
    assert LEDGER.identities["192.0.2.7"].held == 550
    link.unfinished = 600
    arrival.received(bytes(1))
    await until(lambda: place.gone != [])
    assert place.gone == ["its first message has 1101 bytes so far, and a limit of bytes is reached"]
    assert link.told[-1] == "abort" and "192.0.2.7" not in LEDGER.identities


async def test_first_message_that_is_complete_is_not_counted() -> None:
    place = Place()
    arrival, _ = arrive(place)
    client = client_session("rsocket", Settings())
    client.link_up(0.0)
    hello = b"".join(client.take_output())
    arrival.received(hello[:7])
    assert LEDGER.identities["192.0.2.7"].held == 7
    arrival.received(hello[7:])
    assert "192.0.2.7" not in LEDGER.identities


async def test_link_that_is_made_after_its_refusal_is_closed() -> None:
    place, settings = Place(), Settings()
    arrival = Arrival(place, Limits(settings), detectors("rsocket", settings)(), "192.0.2.7", "rsocket")
    arrival.refuse(Refusal(RefusalCause.CLOSING, "the server is closing"))
    link = FakeLink()
    arrival.link_made(link)
    assert isinstance(link.receiver, Discard) and link.told == ["close"]
    assert place.gone == ["the server is closing"] and place.found == []
