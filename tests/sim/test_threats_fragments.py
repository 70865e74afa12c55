"""Hostile fragments, and the safe answer to them, in every dialect."""

from __future__ import annotations

import gc

import pytest

from tests.builds import Build
from tests.sim.target import DIALECTS, V00, V02, V1, Target

ALL = pytest.mark.parametrize("dialect", DIALECTS)
COUNTED = pytest.mark.parametrize("dialect", (V1, V02))
NEXT = 0x20
FOLLOWS = 0x80
REJECTED = 0x202
OVERHEAD = 64
"""The counted overhead of a fragment."""


@pytest.fixture(autouse=True)
def nothing_held() -> None:
    """Release the sessions of other tests, and the bytes that they hold."""
    gc.collect()


def fragment(target: Target, stream: int, data: bytes = b"x") -> bytes:
    return target.item(stream, data, NEXT | FOLLOWS)


@COUNTED
@pytest.mark.parametrize(
    ("limits", "data"),
    [
        ({"max_fragments": 50}, b"x"),  # THREATS 47
        ({"max_payload_bytes": 500}, b"x" * 20),  # THREATS 47
        ({"max_reassembly_bytes": 2_000}, b"x"),  # THREATS 47
        ({"max_process_reassembly_bytes": 2_000}, b"x"),  # THREATS 47
        ({"max_empty_fragments": 5}, b""),  # THREATS 48
    ],
)
def test_a_request_in_fragments_without_end_is_given_up(
    build: Build, dialect: str, limits: dict[str, int], data: bytes
) -> None:
    target = Target(build, dialect, **limits)
    errors, events = target.say(target.request("REQUEST_RESPONSE", 1, flags=FOLLOWS), fragment(target, 1, data) * 60)
    assert (errors, events) == ([(1, REJECTED)], [])
    assert target.held == 0
    # The id may be reused, and the connection still works.
    assert target.say(target.request("REQUEST_RESPONSE", 1)) == ([], ["Requested"])


@ALL
@pytest.mark.parametrize(
    ("limits", "data"),
    [
        ({"max_fragments": 50}, b"x"),  # THREATS 47
        ({"max_payload_bytes": 500}, b"x" * 20),  # THREATS 47
        ({"max_reassembly_bytes": 2_000}, b"x"),  # THREATS 47
        ({"max_empty_fragments": 5}, b""),  # THREATS 48
    ],
)
def test_an_answer_in_fragments_without_end_is_given_up(
    build: Build, dialect: str, limits: dict[str, int], data: bytes
) -> None:
    target = Target(build, dialect, "client", **limits)
    stream = target.open("STREAM")
    errors, events = target.say(fragment(target, stream, data) * 60)
    assert (errors, events[-1]) == ([], "Failed")
    assert target.held == 0
    assert target.session.open_streams == 0
    assert target.session.link_wanted


@COUNTED
def test_of_a_thousand_unfinished_requests_the_oldest_go_first(build: Build, dialect: str) -> None:
    # THREATS 49
    target = Target(build, dialect, max_reassembly_bytes=100_000, reassembly_timeout=60.0)
    begun = [
        target.request("REQUEST_RESPONSE", 2 * number + 1, data=bytes(1000), flags=FOLLOWS) for number in range(1000)
    ]
    errors, events = target.say(*begun)
    kept = target.held // (1000 + OVERHEAD)
    assert events == []
    # In the order of arrival.
    assert errors == [(2 * number + 1, REJECTED) for number in range(1000 - kept)]
    assert (80 < kept < 100, target.held <= 100_000) == (True, True)
    # A minute later, the others have expired as well.
    target.session.handle_timer(target.now + 60.0)
    assert len(target.told()[0]) == kept
    assert target.held == 0


@ALL
def test_of_many_unfinished_answers_the_oldest_go_first(build: Build, dialect: str) -> None:
    # THREATS 49
    target = Target(build, dialect, "client", max_reassembly_bytes=10_000)
    streams = [target.open("STREAM") for _ in range(20)]
    target.session.receive(b"".join(fragment(target, stream, bytes(1000)) for stream in streams), target.now)
    failed = [event.stream_id for event in target.session.take_events() if type(event).__name__ == "Failed"]
    assert failed == streams[: len(failed)]
    assert len(failed) == 20 - target.held // (1000 + OVERHEAD) == 11


@COUNTED
@pytest.mark.parametrize("what", ["cancel", "error", "request-n", "request", "push", "another kind"])
def test_a_request_that_is_interrupted_is_dropped(build: Build, dialect: str, what: str) -> None:
    # THREATS 50
    target = Target(build, dialect)
    assert target.say(target.request("REQUEST_RESPONSE", 1, data=bytes(1000), flags=FOLLOWS)) == ([], [])
    assert target.held > 1000
    interruption = {
        "cancel": bytes(target.codec.cancel_frame(1)),
        "error": target.error(1),
        "request-n": target.request_n(1, 5),
        "request": target.request("REQUEST_RESPONSE", 1),
        "push": target.frame("METADATA_PUSH", 1, metadata=b"m"),
        "another kind": target.request("REQUEST_STREAM", 1, flags=FOLLOWS),
    }[what]
    if dialect == V02 and what == "request":
        # There, further requests of the same kind are fragments: this one is the last.
        assert target.say(interruption) == ([], ["Requested"])
        return
    errors, events = target.say(interruption)
    # A stream that was canceled or failed gets no response.
    assert errors == ([] if what in ("cancel", "error") else [(1, REJECTED)])
    assert (events, target.held) == ([], 0)
    # The rest of it is ignored.
    assert target.say(target.item(1, b"rest")) == ([], [])


@COUNTED
def test_credit_between_the_fragments_of_an_item_is_no_interruption(build: Build, dialect: str) -> None:
    # THREATS 50: it concerns the other direction.
    target = Target(build, dialect)
    target.say(target.request("REQUEST_CHANNEL", 1))
    target.session.request(1, 6)
    target.session.take_output()
    said = (fragment(target, 1, b"a"), target.request_n(1, 5), target.item(1, b"b"))
    assert target.say(*said) == ([], ["CreditGranted", "ItemReceived"])


@ALL
@pytest.mark.parametrize("how", ["error", "cancel", "closed"])
def test_a_stream_that_ends_takes_its_unfinished_item_along(build: Build, dialect: str, how: str) -> None:
    # THREATS 50
    target = Target(build, dialect, "client")
    stream = target.open("STREAM")
    target.say(fragment(target, stream, bytes(1000)))
    assert target.held > 1000
    if how == "error":
        target.say(target.error(stream))
    elif how == "cancel":
        target.session.cancel(stream)
    else:
        target.session.link_down(target.now, None)
    assert target.held == 0


@ALL
def test_an_item_of_many_fragments_is_put_together_in_one_go(build: Build, dialect: str) -> None:
    # THREATS 51: tests/core/test_fragments.py measures the cost.
    target = Target(build, dialect, "client")
    stream = target.open("STREAM")
    target.session.receive(fragment(target, stream, bytes(1024)) * 5_000, target.now)
    target.session.receive(target.item(stream, b"end"), target.now)
    item = target.session.take_events()[-1]
    assert len(item.payload.data) == 5_000 * 1024 + 3
    assert target.held == 0


def test_the_first_draft_has_no_requests_in_fragments(build: Build) -> None:
    # THREATS 47: FOLLOWS has no meaning on them, so nothing is held.
    target = Target(build, V00)
    body = bytearray(target.request("REQUEST_RESPONSE", 1)[4:])
    body[1] |= 0x20
    assert target.say(target.prefixed(bytes(body))) == ([], ["Requested"])
    assert target.held == 0
