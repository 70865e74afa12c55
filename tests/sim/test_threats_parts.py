"""Hostile parts of elements over reactive-streams-io, and the safe answer to them: goodbye with the reason."""

from __future__ import annotations

import gc

import pytest

from tests.builds import Build
from tests.sim.subscriber import Subscriber

OVERHEAD = 64
"""The counted overhead of a part."""


@pytest.fixture(autouse=True)
def nothing_held() -> None:
    """Release the sessions of other tests, and the bytes that they hold."""
    gc.collect()


SIDES = pytest.mark.parametrize("is_client", [True, False], ids=["client", "server"])


@SIDES
@pytest.mark.parametrize(
    ("limits", "data"),
    [
        ({"max_fragments": 50}, b"x"),  # THREATS 47, 101
        ({"max_payload_bytes": 500}, b"x" * 20),  # THREATS 47, 101
        ({"max_reassembly_bytes": 2_000}, b"x"),  # THREATS 47, 101
        ({"max_process_reassembly_bytes": 2_000}, b"x"),  # THREATS 47, 101
        ({"max_empty_fragments": 5}, b""),  # THREATS 48, 101
    ],
)
def test_an_element_in_parts_without_end_is_given_up(
    build: Build, is_client: bool, limits: dict[str, int], data: bytes
) -> None:
    peer = Subscriber(build, is_client, **limits)
    stream = peer.subscribe()
    peer.say(*[peer.part(stream, 0, data)] * 60)
    (limit,) = limits
    peer.ended(limit)


@SIDES
@pytest.mark.parametrize("limit", ["max_reassembly_bytes", "max_process_reassembly_bytes"])
def test_many_elements_without_end_are_given_up_at_the_limit(build: Build, is_client: bool, limit: str) -> None:
    # THREATS 49, 101
    peer = Subscriber(build, is_client, **{limit: 10_000})
    streams = [peer.subscribe() for _ in range(3)]
    most = 10_000 // (1000 + OVERHEAD)
    for element in range(most):
        peer.say(peer.part(streams[element % 3], element, bytes(1000)))
        assert peer.held == (element + 1) * (1000 + OVERHEAD)
    assert peer.events() == []
    peer.say(peer.part(streams[0], most, bytes(1000)))
    peer.ended(f"{limit} (10000)")


def test_elements_that_are_whole_count_no_more(build: Build) -> None:
    # THREATS 101: elements within the limit are accepted indefinitely.
    peer = Subscriber(build, max_reassembly_bytes=3_000)
    stream = peer.subscribe(demand=50)
    for element in range(50):
        peer.say(peer.part(stream, element, bytes(1000)), peer.part(stream, element, bytes(1000)))
        # The last part completes it, and it is delivered immediately.
        peer.say(peer.part(stream, element, bytes(1000), last=True))
        (item,) = peer.events()
        assert (len(item.payload.data), peer.held) == (3000, 0)


@pytest.mark.parametrize("how", ["error", "cancel", "goodbye", "close", "lost"])
def test_a_stream_that_ends_takes_its_unfinished_elements_along(build: Build, how: str) -> None:
    # THREATS 50
    peer = Subscriber(build)
    stream = peer.subscribe()
    peer.say(peer.part(stream, 0, bytes(1000)), peer.part(stream, 1, bytes(1000)))
    assert peer.held == 2 * (1000 + OVERHEAD)
    if how == "error":
        peer.say(bytes([9, stream, 0]))
    elif how == "cancel":
        peer.session.cancel(stream)
    elif how == "goodbye":
        peer.say(b"\x0d\x00")
    elif how == "close":
        peer.session.close(1.0, peer.errors.SessionClosed("enough"))
    else:
        peer.session.link_down(1.0, None)
    assert peer.held == 0


def test_elements_that_are_not_whole_in_time_are_given_up(build: Build) -> None:
    # THREATS 49, 101
    peer = Subscriber(build, reassembly_timeout=60.0)
    stream = peer.subscribe()
    peer.say(peer.part(stream, 0, b"x"))
    peer.session.handle_timer(60.9)
    # Further parts do not extend the time.
    peer.say(peer.part(stream, 0, b"x"), now=60.9)
    assert peer.events() == []
    peer.session.handle_timer(61.0)
    peer.ended("within 60 s")


def test_an_element_of_many_parts_is_put_together_in_one_go(build: Build) -> None:
    # THREATS 51: tests/core/test_fragments.py measures the cost.
    peer = Subscriber(build)
    stream = peer.subscribe()
    peer.say(*[peer.part(stream, 0, bytes(1024))] * 5_000, peer.part(stream, 0, b"end", last=True))
    (item,) = peer.events()
    assert (len(item.payload.data), peer.held) == (5_000 * 1024 + 3, 0)
