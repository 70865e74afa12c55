from __future__ import annotations

from typing import Any

import pytest

from tests.aio.test_exchanges import OTHER, STREAM, World
from tests.builds import Build

# Events.


async def test_item_is_the_response_of_its_call(build: Build) -> None:
    world = World(build)
    mine, other = world.call(), world.call(OTHER)
    world.happen("ItemReceived", STREAM, world.payload(b"x"), True)
    assert mine.result().data == b"x"
    assert not other.done()
    assert world.open() == [OTHER]


async def test_response_of_a_canceled_call_is_dropped(build: Build) -> None:
    world = World(build)
    world.call().cancel()
    world.happen("ItemReceived", STREAM, world.payload(b"x"), True)
    world.call().cancel()
    world.happen("Failed", STREAM, ValueError())
    assert world.open() == []
    assert world.session.told == []


async def test_response_to_an_ended_stream_is_dropped(build: Build) -> None:
    world = World(build)
    answered = []
    world.service.call("r")(lambda request: answered.append(request) or request)  # type: ignore[func-returns-value]
    world.session.closed.add(STREAM)
    world.happen("Requested", STREAM, build.module("weirpool.kinds").Kind.CALL, "r", world.payload(b"x"), 1, True)
    assert (len(answered), world.session.told) == (1, [])


async def test_upload_owns_its_completion_after_the_response(build: Build) -> None:
    world = World(build)
    future = world.call()
    world.happen("ItemReceived", STREAM, world.payload(b"x"), False)
    assert future.result().data == b"x"
    world.happen("Completed", STREAM)
    assert (world.open(), world.session.told) == ([], [])


async def test_call_completed_without_item_has_an_empty_response(build: Build) -> None:
    world = World(build)
    future = world.call()
    world.happen("Completed", STREAM)
    assert (future.result().data, future.result().metadata) == (b"", None)


async def test_items_and_runs_reach_their_stream_until_it_ends(build: Build) -> None:
    world = World(build)
    inbound = world.inbound()
    run = build.module("weirpool.payload").PayloadRun.of([world.payload(b"1"), world.payload(b"2")])
    world.happen("ItemReceived", STREAM, world.payload(b"0"), False)
    world.happen("RunReceived", STREAM, run)
    assert not inbound.over
    world.happen("ItemReceived", STREAM, world.payload(b"3"), True)
    assert inbound.prepare()
    assert [item.data for item in inbound.ready] == [b"0", b"1", b"2", b"3"]
    assert (inbound.over, inbound.error, world.open()) == (True, None, [])


async def test_completion_ends_only_the_receiving_half(build: Build) -> None:
    world = World(build)
    inbound, outbound = world.inbound(), world.outbound()
    world.happen("Completed", STREAM)
    assert (inbound.over, inbound.error) == (True, None)
    assert (outbound.told, list(world.exchanges.outbound)) == ([], [STREAM])


async def test_a_failure_ends_both_halves_and_the_call(build: Build) -> None:
    world = World(build)
    error = world.errors.ApplicationError(0x301, "boom")
    inbound, outbound, call = world.inbound(), world.outbound(), world.call()
    world.happen("Failed", STREAM, error)
    assert inbound.error is error
    with pytest.raises(world.errors.ApplicationError) as raised:
        call.result()
    assert raised.value is error
    assert (outbound.told, world.open()) == (["canceled"], [])


@pytest.mark.parametrize("whole", [False, True])
async def test_peer_cancels_the_sending_half_or_the_whole_stream(build: Build, whole: bool) -> None:
    world = World(build)
    inbound, outbound = world.inbound(), world.outbound()
    world.happen("Canceled", STREAM, whole)
    assert outbound.told == ["canceled"]
    assert (inbound.over, world.open()) == (whole, [] if whole else [STREAM])
    if whole:
        assert isinstance(inbound.error, world.errors.Canceled)


async def test_credit_reaches_its_sending_half(build: Build) -> None:
    world = World(build)
    mine, other = world.outbound(), world.outbound(OTHER)
    world.happen("CreditGranted", STREAM, 5)
    world.happen("CreditGranted", 99, 5)
    assert (mine.told, other.told) == (["granted"], [])


async def test_request_reaches_its_handler(build: Build) -> None:
    world = World(build)
    world.service.call("r")(lambda request: request)
    kind = build.module("weirpool.kinds").Kind.CALL
    world.happen("Requested", 2, kind, "r", world.payload(b"x"), 0, True)
    assert world.session.told == [("send", 2, [b"x"], True)]


@pytest.mark.parametrize("end", ["Canceled", "Failed"])
@pytest.mark.parametrize("kind", ["CALL", "STREAM", "CHANNEL"])
async def test_request_that_ends_in_the_same_batch_is_not_begun(build: Build, kind: str, end: str) -> None:
    # THREATS 36
    world = World(build)
    begun = []
    for register in (world.service.call, world.service.stream):
        register("r")(lambda request: begun.append(request) or [])  # type: ignore[func-returns-value]
    world.service.channel("r")(lambda request, items: begun.append(request) or [])  # type: ignore[func-returns-value]
    events, kinds = build.module("weirpool.events"), build.module("weirpool.kinds").Kind
    requests = [events.Requested(each, kinds[kind], "r", world.payload(b"x"), 1, False) for each in (2, 4, 6)]
    item = events.ItemReceived(4, world.payload(b"y"), False)
    last = events.Canceled(4, True) if end == "Canceled" else events.Failed(4, ValueError())
    world.dispatch.take([*requests, item, events.CreditGranted(4, 1), last])
    assert len(begun) == 2
    assert not world.session.verbs("close")


async def test_request_whose_own_half_alone_is_canceled_is_begun(build: Build) -> None:
    world = World(build)
    begun = []
    world.service.channel("r")(lambda request, items: begun.append(request) or [])  # type: ignore[func-returns-value]
    events, kinds = build.module("weirpool.events"), build.module("weirpool.kinds").Kind
    request = events.Requested(4, kinds.CHANNEL, "r", world.payload(b"x"), 1, False)
    world.dispatch.take([request, events.Canceled(4, False)])
    assert len(begun) == 1


async def test_pushed_metadata_reaches_the_service(build: Build, caplog: pytest.LogCaptureFixture) -> None:
    world = World(build)
    seen = []

    @world.service.push
    def push(metadata: bytes) -> None:
        seen.append(metadata)
        if metadata == b"bad":
            raise ValueError("broken")

    world.happen("MetadataPushed", 0, b"bad")
    world.happen("MetadataPushed", 0, b"good")
    assert seen == [b"bad", b"good"]
    assert "the push handler failed" in caplog.text


# Events without an owner.


def brought(build: Build, *names: str) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the fields of events beside their stream."""
    payload = build.module("weirpool.payload").Payload(b"x")
    everything: dict[str, tuple[Any, ...]] = {
        "ItemReceived": (payload, False),
        "RunReceived": (build.module("weirpool.payload").PayloadRun.of([payload]),),
        "Completed": (),
        "Failed": (ValueError("boom"),),
    }
    return [(name, everything[name]) for name in names or everything]


async def test_an_event_without_an_owner_ends_the_session(build: Build) -> None:
    # THREATS 96
    for name, arguments in brought(build):
        world = World(build)
        world.happen(name, STREAM, *arguments)
        world.happen(name, STREAM, *arguments)
        # It is reported once, with the stream and the event.
        [(verb, error)] = world.session.told
        assert verb == "close"
        assert isinstance(error, world.errors.OwnerMissing)
        assert f"stream {STREAM}: {name} arrived without an owner" in str(error)


async def test_sending_half_does_not_own_items(build: Build) -> None:
    for name, arguments in brought(build, "ItemReceived", "RunReceived", "Completed"):
        world = World(build)
        world.outbound()
        world.happen(name, STREAM, *arguments)
        assert [verb for verb, *_ in world.session.told] == ["close"]


@pytest.mark.parametrize("how", ["abandon", "cancel_stream", "release", "fail"])
async def test_events_of_abandoned_streams_are_dropped(build: Build, how: str) -> None:
    for name, arguments in brought(build):
        world = World(build)
        if how == "abandon":
            world.call()
        else:
            world.inbound()
        if how == "fail":
            world.exchanges.fail(STREAM, ValueError("broken"), "")
        else:
            getattr(world.exchanges, how)(STREAM)
        world.happen(name, STREAM, *arguments)
        assert world.session.verbs("close") == []


async def test_late_grant_or_end_of_sending_half_is_ignored(build: Build) -> None:
    world = World(build)
    world.happen("CreditGranted", STREAM, 5)
    world.happen("Canceled", STREAM, True)
    # A stream that the peer opened, whose handler has responded.
    world.happen("Failed", 2, ValueError("boom"))
    world.exchanges.half_ended(world.outbound(), STREAM, "")
    world.happen("Failed", STREAM, ValueError("boom"))
    assert world.session.told == []


async def test_grant_for_an_open_half_needs_an_owner(build: Build) -> None:
    # THREATS 96
    world = World(build)
    world.session.left[STREAM] = 5
    world.happen("CreditGranted", STREAM, 5)
    ((_, error),) = world.session.verbs("close")
    assert isinstance(error, world.errors.OwnerMissing)
    assert f"stream {STREAM}: CreditGranted arrived without an owner" in str(error)


async def test_push_to_a_stream_of_this_side_needs_an_owner(build: Build) -> None:
    # THREATS 96
    world = World(build)
    seen: list[bytes] = []
    world.service.push(seen.append)
    world.call()
    world.happen("MetadataPushed", STREAM, b"for a call")
    # A stream that the peer opened.
    world.happen("MetadataPushed", 2, b"for a handler")
    assert (seen, world.session.told) == ([b"for a call", b"for a handler"], [])
    world.happen("MetadataPushed", OTHER, b"for nobody")
    ((_, error),) = world.session.verbs("close")
    assert isinstance(error, world.errors.OwnerMissing)
    assert f"stream {OTHER}: MetadataPushed arrived without an owner" in str(error)
    assert len(seen) == 2


async def test_push_to_abandoned_stream_does_not_reach_the_service(build: Build) -> None:
    world = World(build)
    seen: list[bytes] = []
    world.service.push(seen.append)
    world.inbound()
    world.exchanges.cancel_stream(STREAM)
    world.happen("MetadataPushed", STREAM, b"late")
    world.happen("MetadataPushed", 0, b"good")
    assert seen == [b"good"]


async def test_without_requests_keeps_only_events_of_open_streams(build: Build) -> None:
    world = World(build)
    events = build.module("weirpool.events")
    kind = build.module("weirpool.kinds").Kind.CHANNEL
    payload = world.payload(b"x")
    request = events.Requested(2, kind, "r", payload, 1, False)
    owned = [events.ItemReceived(1, payload, True), events.Failed(4, ValueError()), events.Closed(None)]
    others = [events.Established(payload, "", ""), request, events.Completed(2), events.MetadataPushed(0, b"m")]
    without_requests = build.module("weirpool.aio.dispatch").without_requests
    assert without_requests([others[0], owned[0], *others[1:], *owned[1:]]) == owned
