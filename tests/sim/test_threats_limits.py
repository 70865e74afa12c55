"""Each limit of reassembly, in each protocol that has it: exactly at the limit, and one beyond it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest

from tests.builds import Build
from tests.sim.subscriber import Subscriber
from tests.sim.target import DIALECTS, Target

NEXT_AND_FOLLOWS = 0xA0
OVERHEAD = 64
"""The counted overhead of a fragment."""
REACTIVE_STREAMS = "reactive-streams-0"


@dataclass(frozen=True)
class Case:
    """A limit.

    Args:
        value: The value of the setting.
        within: The fragments of one item that are accepted.
        beyond: The fragment that is rejected.

    """

    value: int
    within: tuple[bytes, ...]
    beyond: bytes


CASES = {
    "max_payload_bytes": Case(300, (bytes(100),) * 3, b"x"),
    "max_fragments": Case(3, (b"x",) * 3, b"x"),
    "max_empty_fragments": Case(3, (b"x", b"", b"", b""), b""),
    "max_reassembly_bytes": Case(3 * (100 + OVERHEAD), (bytes(100),) * 3, b""),
    "max_process_reassembly_bytes": Case(3 * (100 + OVERHEAD), (bytes(100),) * 3, b""),
}
ELSEWHERE = {
    "fragment_bytes": "about what this side sends",
    "max_open_elements": "reactive-streams-io alone: tests/reactivestreams/test_inbound.py",
    "reassembly_timeout": "below",
}


class Rsocket:
    """A client of the RSocket family that receives the fragments of a response.

    Attributes:
        target: Its session.

    """

    def __init__(self, build: Build, dialect: str, **limits: Any) -> None:
        self.target: Any = Target(build, dialect, "client", **limits)
        self.stream = self.target.open("STREAM")

    def say(self, data: bytes) -> None:
        self.target.session.receive(self.target.item(self.stream, data, NEXT_AND_FOLLOWS), self.target.now)


class Reactive:
    """A subscriber of reactive-streams-io that receives the parts of an element."""

    def __init__(self, build: Build, **limits: Any) -> None:
        self.target: Any = Subscriber(build, **limits)
        self.target.now = 1.0
        self.stream = self.target.subscribe()

    def say(self, data: bytes) -> None:
        self.target.say(self.target.part(self.stream, 0, data))


def receiver(build: Build, protocol: str, **limits: Any) -> Rsocket | Reactive:
    return Reactive(build, **limits) if protocol == REACTIVE_STREAMS else Rsocket(build, protocol, **limits)


def failures(target: Any) -> list[str]:
    """Return the errors of newly failed streams."""
    events = target.session.take_events()
    return [str(event.error) for event in events if type(event).__name__ == "Failed"]


PROTOCOLS = pytest.mark.parametrize("protocol", [*DIALECTS, REACTIVE_STREAMS])


@PROTOCOLS
@pytest.mark.parametrize("limit", CASES)
def test_limit_is_effective_in_every_protocol(build: Build, protocol: str, limit: str) -> None:
    # THREATS 47, 48, 101
    case = CASES[limit]
    peer = receiver(build, protocol, **{limit: case.value})
    for data in case.within:
        peer.say(data)
    assert failures(peer.target) == []
    assert peer.target.held == sum(len(data) + OVERHEAD for data in case.within)
    peer.say(case.beyond)
    (why,) = failures(peer.target)
    assert f"{limit} ({case.value})" in why
    assert peer.target.held == 0


@PROTOCOLS
def test_time_of_an_item_is_limited_in_every_protocol(build: Build, protocol: str) -> None:
    # THREATS 49, 101
    peer = receiver(build, protocol, reassembly_timeout=30.0)
    peer.say(b"x")
    began = peer.target.now
    peer.target.session.handle_timer(began + 29.9)
    assert failures(peer.target) == []
    peer.target.session.handle_timer(began + 30.0)
    (why,) = failures(peer.target)
    assert "30 s" in why
    assert peer.target.held == 0


def test_every_limit_on_parts_is_in_the_table(build: Build) -> None:
    settings = build.module("weirpool.settings").Settings
    words = ("fragment", "reassembly", "element", "max_payload")
    found = {field.name for field in fields(settings) if any(word in field.name for word in words)}
    assert found - {"element_sizes"} == CASES.keys() | ELSEWHERE.keys()
