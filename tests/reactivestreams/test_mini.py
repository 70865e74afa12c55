"""All output of our sessions is read by a reader that was written only from the page of the protocol."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builds import Build
from tests.reactivestreams.mini import Reader, Wrong
from tests.sim.pair import CUTS, Pair

SIZES = (("four", 4), ("hundred", 100))
ROUTES = ("four", "hundred", "any")
UNBOUNDED = 2**63 - 1

DEMANDS = st.sampled_from((0, 1, 2, 7, 200, 20_000, UNBOUNDED))
LENGTHS = st.sampled_from((0, 1, 5, 63, 64, 65, 127, 128, 300))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.booleans(), st.sampled_from(ROUTES), DEMANDS, st.binary(max_size=4)),
        st.tuples(st.just("send"), st.integers(0, 9), st.lists(LENGTHS, min_size=1, max_size=4), st.booleans()),
        st.tuples(st.just("width"), st.integers(0, 9), st.sampled_from((1, 2, 50, 20_000))),
        st.tuples(st.just("request"), st.integers(0, 9), DEMANDS),
        st.tuples(st.sampled_from(("cancel", "complete", "fail", "drive")), st.integers(0, 9)),
    ),
    max_size=30,
)


class Talk:
    """Two sessions that execute the steps of a test with the streams that are open."""

    def __init__(self, build: Build, cut: str, metadata: bool) -> None:
        both = {"extensions": ("metadata",) if metadata else (), "fragment_bytes": 64, "element_sizes": SIZES}
        self.pair = Pair(build, cut=CUTS[cut], dialect="reactive-streams-0", client=both, server=both)
        self.payload = build.module("weirpool.payload")
        self.errors = build.module("weirpool.errors")
        self.kinds = build.module("weirpool.kinds")
        self.metadata = metadata
        self.opened: list[tuple[Any, int]] = []
        self.pair.drive()

    def requests(self) -> list[tuple[Any, Any]]:
        """Return the session that received a request, and the request."""
        pair = self.pair
        sides = ((pair.client, pair.client_events), (pair.server, pair.server_events))
        return [(side, event) for side, events in sides for event in events if type(event).__name__ == "Requested"]

    def step(self, what: str, first: Any, *more: Any) -> None:
        if what == "drive":
            self.pair.drive()
        elif what == "open":
            route, demand, data = more
            side = self.pair.client if first else self.pair.server
            request = self.payload.Payload(data, data if self.metadata and len(data) > 2 else None)
            self.opened.append((side, side.open(self.kinds.Kind.STREAM, route, request, demand)))
        elif what in ("request", "cancel") and self.opened:
            side, stream = self.opened[first % len(self.opened)]
            if what == "cancel":
                side.cancel(stream)
            elif more[0]:
                side.request(stream, more[0])
        elif what in ("send", "width", "complete", "fail") and self.requests():
            requests = self.requests()
            side, request = requests[first % len(requests)]
            self.answer(side, request, what, *more)

    def answer(self, side: Any, request: Any, what: str, *more: Any) -> None:
        stream = request.stream_id
        size = dict(SIZES).get(request.route, 0)
        if what == "complete":
            side.complete(stream)
        elif what == "fail":
            side.fail(stream, self.errors.ApplicationError(0x201, "because"))
        elif side.credit(stream) == 0:
            return
        elif what == "width":
            width = size or 3
            self.run(
                side, stream, self.payload.PayloadRun.fixed(bytes(range(100)) * width * (more[0] // 50 + 1), width)
            )
        else:
            lengths, annotated = more
            items = [bytes((length & 255,)) * (size or length) for length in lengths]
            mark = b"mark" if annotated and self.metadata else None
            self.run(side, stream, self.payload.PayloadRun.of([self.payload.Payload(item, mark) for item in items]))

    def run(self, side: Any, stream: int, run: Any) -> None:
        at = 0
        while at < len(run) and side.credit(stream):
            at += side.send_run(stream, run, at)

    def readers(self) -> tuple[Reader, Reader]:
        self.pair.drive()
        return (
            Reader(self.pair.client_sent, True, self.metadata),
            Reader(self.pair.server_sent, False, self.metadata),
        )


def check_demand(subscriber: Reader, publisher: Reader) -> None:
    """Check that nothing arrives beyond the demand, or for unknown subscriptions."""
    for id, streams in publisher.told.items():
        assert len(streams) == len(subscriber.asked[id])
        for stream, asked in zip(streams, subscriber.asked[id], strict=True):
            assert len(stream.elements) + len(stream.parts) <= asked.demand
            size = dict(SIZES).get(asked.publisher.partition("?")[0], 0)
            assert stream.size == size


def elements_for(events: list[Any], payloads: Any) -> dict[int, list[tuple[bytes, bytes | None]]]:
    """Return the delivered elements by stream id; all subscriptions of an id together."""
    found: dict[int, list[tuple[bytes, bytes | None]]] = {}
    for event in events:
        items = [event.payload] if type(event).__name__ == "ItemReceived" else list(getattr(event, "run", ()))
        if items:
            found.setdefault(event.stream_id, []).extend((item.data, item.metadata) for item in items)
    return found


@settings(max_examples=60)
@given(steps=STEPS, metadata=st.booleans(), cut=st.sampled_from([*CUTS]))
def test_reader_of_the_page_understands_all_messages(build: Build, steps: list[Any], metadata: bool, cut: str) -> None:
    talk = Talk(build, cut if len(steps) < 8 else "whole", metadata)
    for step in steps:
        talk.step(*step)
    client, server = talk.readers()
    assert (client.version, server.version) == (0, 0)
    assert client.extensions == server.extensions == ([1] if metadata else [])
    check_demand(client, server)
    check_demand(server, client)
    pair = talk.pair
    for events, publisher, subscriber in ((pair.client_events, server, client), (pair.server_events, client, server)):
        delivered = elements_for(events, talk.payload)
        for id, streams in publisher.told.items():
            sent = [element for stream in streams for element in stream.elements]
            if any(asked.canceled for asked in subscriber.asked[id]):
                # Elements after a cancel were dropped.
                assert len(delivered.get(id, [])) <= len(sent)
            else:
                assert delivered.get(id, []) == sent
    assert client.goodbye is server.goodbye is None


def test_all_message_types_occur(build: Build) -> None:
    talk = Talk(build, "random", True)
    talk.step("open", True, "four", 3, b"long data")
    talk.step("open", True, "any", 3, b"")
    talk.step("open", True, "any", 3, b"")
    for step in (("drive", 0), ("width", 0, 2), ("send", 1, [300, 5], True), ("complete", 1), ("fail", 2)):
        talk.step(*step)
    talk.step("request", 0, 7)
    talk.step("drive", 0)
    talk.step("cancel", 0)
    talk.pair.drive()
    talk.pair.client.close(1.0)
    client, server = talk.readers()
    assert client.types | server.types == {*range(1, 14), 64, 65}
    assert server.goodbye == "goodbye"
    [(stream, ended)] = [server.told[id] + [asked] for id, [asked] in client.asked.items() if asked.canceled]
    assert (stream.size, stream.elements, ended.publisher, ended.mark) == (
        4, [(bytes(range(at, at + 4)), None) for at in (0, 4, 8)], "four?bG9uZyBkYXRh", b"long data",
    )  # fmt: skip


def test_goodbye_is_the_last_message_of_both(build: Build) -> None:
    talk = Talk(build, "whole", False)
    talk.step("open", True, "four", 3, b"")
    talk.step("drive", 0)
    talk.pair.server.close(1.0, talk.errors.LinkLost("why not"))
    client, server = talk.readers()
    assert server.goodbye is not None and client.goodbye == "goodbye"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("010000070100", "subscribed must come first"),
        ("010000" + "060100" + "07010000", "of type 0"),
        ("0100000601040a0100", "packed"),
        ("010000" + "040101", "nothing was subscribed"),
        ("010000" + "06", "not whole"),
        ("020000", "first message is of type 2"),
        ("010000" + "0d00" + "0d00", "follows goodbye"),
        ("010000" + "0601000801" + "070100", "follows the end"),
        ("010000" + "060100" + "0b010000" + "0801", "not whole"),
        ("010000" + "410100", "agreed"),
        ("0100008100", "longer than it need be"),
        ("010000" + "ff" * 9, "more than 9"),
    ],
)
def test_reader_rejects_invalid_messages(data: str, what: str) -> None:
    with pytest.raises(Wrong, match=what):
        Reader(bytes.fromhex(data), True, False)
