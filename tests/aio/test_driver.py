from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.aio.fakes import FakeLink, FakeSession, fake_connection
from tests.builds import Build
from tests.waiting import turns, until


class World:
    """A driver between a fake session and a fake link."""

    def __init__(self, build: Build, **settings: Any) -> None:
        self.build = build
        self.module = build.module("weirpool.aio.driver")
        self.events = build.module("weirpool.events")
        self.errors = build.module("weirpool.errors")
        self.session = FakeSession(build)
        self.settings = build.module("weirpool.settings").Settings(**settings)
        self.service = build.module("weirpool.aio.service").Service()
        self.unlinked = 0
        connection = fake_connection(build)
        self.driver = self.module.Driver(self.session, self.settings, self.service, connection, self._unlinked)
        # Nothing here takes time, even on a busy machine.
        self.driver.flow.turns.clock = lambda: 0.0
        self.link = self.new_link()

    def _unlinked(self) -> None:
        self.unlinked += 1

    def new_link(self) -> FakeLink:
        link = FakeLink(self.driver)
        self.driver.link_made(link)
        return link

    def request(self, route: str = "r", kind: str = "CALL") -> Any:
        payload = self.build.module("weirpool.payload").Payload(b"")
        return self.events.Requested(2, self.build.module("weirpool.kinds").Kind[kind], route, payload, 0, True)

    def end_session(self, error: Exception | None = None) -> None:
        """Let the session report its end."""
        self.session.link_wanted = False
        self.session.events.append(self.events.Closed(error))
        self.driver.flush()


# Batches.


async def test_new_link_gets_pending_output(build: Build) -> None:
    world = World(build)
    world.session.output = [b"set-up"]
    world.driver.link_lost(None)
    link = world.new_link()
    assert world.session.told[-1] == ("link_up",)
    assert link.written == [b"set-up"]
    assert not world.driver.flow.paused


async def test_output_of_a_read_is_written_once_at_its_end(build: Build) -> None:
    world = World(build)
    written_before = []

    @world.service.call("r")
    def handler(request):
        world.session.output.append(b"answer")
        world.driver.flow.schedule_write()
        written_before.extend(world.link.written)
        return b""

    world.session.events = [world.request(), world.request()]
    world.driver.received(b"request")
    assert world.session.told[1] == ("receive", b"request")
    assert (written_before, world.link.written) == ([], [b"answer", b"answer"])
    # No flush is scheduled for a later turn.
    world.session.output = [b"later"]
    await turns(3)
    assert len(world.link.written) == 2


async def test_output_between_reads_is_written_once_per_turn(build: Build) -> None:
    world = World(build)
    for word in (b"a", b"b", b"c"):
        world.session.output.append(word)
        world.driver.flow.schedule_write()
    assert world.link.written == []
    await turns(1)
    assert world.link.written == [b"a", b"b", b"c"]


async def test_large_batch_is_written_before_its_end(build: Build) -> None:
    world = World(build)
    many = 1_000
    for _ in range(many):
        world.session.output.append(b"x")
        world.driver.flow.schedule_write()
    assert many - 100 < len(world.link.written) < many


async def test_events_caused_by_events_are_handled_in_the_same_batch(build: Build) -> None:
    world = World(build)
    seen = []

    @world.service.push
    def push(metadata: bytes) -> None:
        seen.append(metadata)
        if len(seen) < 3:
            world.session.events.append(world.events.MetadataPushed(0, b"%d" % len(seen)))

    world.session.events = [world.events.MetadataPushed(0, b"0")]
    world.driver.received(b"")
    assert seen == [b"0", b"1", b"2"]


async def test_abandoned_streams_are_removed_when_disk_is_busy(build: Build) -> None:
    world = World(build)

    class Kept:
        """A session that always has data that is not durable yet."""

        settled = False
        withheld = frozenset({7, 100_000})

    world.driver.admission = None
    world.driver._durable = Kept()
    for stream in range(1, 10_000, 2):
        world.driver.exchanges.abandoned.add(stream)
        world.driver.flush()
        assert len(world.driver.exchanges.abandoned) <= 1_025
        assert stream < 7 or 7 in world.driver.exchanges.abandoned


async def test_abandoned_streams_are_removed_after_all_events(build: Build) -> None:
    world = World(build)
    payload = build.module("weirpool.payload").Payload(b"x")
    left = world.driver.exchanges.abandoned

    class Kept:
        """A session that holds events until they are durable."""

        settled = False

    for holder in ("nobody", "an acceptor", "a disk"):
        left.add(1)
        world.driver.admission = None
        world.driver._durable = None
        if holder == "an acceptor":
            world.driver.admission = SimpleNamespace(withholds=True)
        elif holder == "a disk":
            world.driver._durable = Kept()
        # Events from before the stream was abandoned are dropped.
        if holder != "an acceptor":
            world.session.events = [world.events.ItemReceived(1, payload, False)]
        world.driver.flush()
        assert left == (set() if holder == "nobody" else {1})
    assert world.session.verbs("close") == []
    world.driver._durable = None
    world.driver.flush()
    world.session.events = [world.events.ItemReceived(1, payload, False)]
    world.driver.flush()
    assert [verb for verb, *_ in world.session.verbs("close")] == ["close"]


async def test_output_stays_in_the_session_without_a_link(build: Build) -> None:
    world = World(build)
    world.driver.link_lost(None)
    world.session.output = [b"x"]
    world.driver.flow.schedule_write()
    await turns(3)
    assert world.session.output == [b"x"]
    assert world.new_link().written == [b"x"]


# Links.


async def test_replaced_link_is_dropped(build: Build) -> None:
    world = World(build)
    new = FakeLink(world.driver)
    world.driver.attach(new)
    assert world.link.told == ["abort"]
    # The end of the old link does not end the new one.
    assert world.link.receiver is not world.driver
    assert world.driver.link is new


async def test_session_requests_another_link_after_a_loss(build: Build) -> None:
    world = World(build)
    error = ValueError("cable")
    world.driver.link_lost(error)
    assert world.session.told[-1] == ("link_down", error)
    assert (world.unlinked, world.driver.flow.paused, world.driver.over.done()) == (1, True, False)


async def test_ended_session_requests_no_link(build: Build) -> None:
    world = World(build)
    error = ValueError("broken")
    world.end_session(error)
    # The link closes after all output is written; `over` is done after that.
    assert (world.driver.closed, world.driver.error) == (True, error)
    assert (world.link.told, world.driver.over.done()) == (["close"], False)
    world.driver.link_lost(None)
    assert (world.unlinked, world.driver.over.done()) == (0, True)


async def test_session_without_link_ends_at_once(build: Build) -> None:
    world = World(build)
    world.driver.link_lost(None)
    world.end_session()
    assert world.driver.over.done()


async def test_silent_peer_loses_its_link(build: Build) -> None:
    world = World(build)
    world.session.events = [world.events.Unlinked(ValueError("silence"))]
    world.driver.flush()
    assert world.link.told == ["abort"]


async def test_detached_session_is_not_closed(build: Build) -> None:
    world = World(build)
    world.session.timer = asyncio.get_running_loop().time()
    world.driver.flush()
    told = list(world.session.told)
    world.driver.detach()
    assert world.link.told == ["abort"]
    assert world.link.receiver is not world.driver
    assert (world.driver.closed, world.driver.over.done(), world.driver.link) == (True, True, None)
    await turns(5)
    assert (world.session.told, world.link.written) == (told, [])
    # It may be closed again.
    await world.driver.close()


# Time.


async def test_session_timer_fires(build: Build) -> None:
    world = World(build)
    now = asyncio.get_running_loop().time()
    # An earlier timer does not delay one that is due sooner.
    for due in (now + 3_600, now):
        world.session.timer = due
        world.driver.flush()
    assert ("handle_timer",) not in world.session.told
    for times in (1, 2):
        await until(lambda times=times: world.session.told.count(("handle_timer",)) == times)
        world.session.timer = now
        world.driver.flush()


async def test_ended_session_has_no_timer(build: Build) -> None:
    world = World(build)
    world.session.timer = asyncio.get_running_loop().time()
    world.driver.flush()
    world.end_session()
    await turns(5)
    assert ("handle_timer",) not in world.session.told


# Closing.


async def test_close_waits_for_open_streams(build: Build) -> None:
    world = World(build)
    closing = asyncio.ensure_future(world.driver.close(3_600))
    await turns(5)
    assert world.session.verbs("close") == [("close", None)]
    assert not closing.done()
    world.end_session()
    world.driver.link_lost(None)
    await closing
    assert len(world.session.verbs("close")) == 1


async def test_streams_fail_after_the_grace(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(build)
    monkeypatch.setattr(world.module, "CLOSE_TIMEOUT", 0.0)
    closing = asyncio.ensure_future(world.driver.close(0))
    await until(lambda: len(world.session.verbs("close")) == 2)
    error = world.session.told[-1][1]
    assert isinstance(error, world.errors.SessionError) and "after 0 s" in str(error)
    # Closing does not wait for ever, even if the link never ends.
    await until(lambda: "abort" in world.link.told)
    world.end_session(error)
    world.driver.link_lost(None)
    await closing


async def test_link_is_aborted_when_it_outlives_its_session(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(build)
    monkeypatch.setattr(world.module, "CLOSE_TIMEOUT", 0.0)
    world.end_session()
    closing = asyncio.ensure_future(world.driver.close(0))
    await until(lambda: "abort" in world.link.told)
    world.driver.link_lost(None)
    await closing
    assert world.session.verbs("close") == [("close", None)]


async def test_close_cancels_handlers_and_logs_those_that_continue(
    build: Build, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(build)
    monkeypatch.setattr(world.module, "CLOSE_TIMEOUT", 0.0)
    released = asyncio.Event()
    seen = []

    @world.service.call("r")
    async def stubborn(request):
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                seen.append("canceled")
        return b""

    world.session.events = [world.request()]
    world.driver.received(b"")
    await turns(2)
    closing = asyncio.ensure_future(world.driver.close())
    await turns(2)
    world.end_session()
    world.driver.link_lost(None)
    await closing
    assert seen == ["canceled"]
    assert "handler did not stop after cancellation" in caplog.text and "the call handler 'r'" in caplog.text
    released.set()
    await until(lambda: not world.driver.exchanges.tasks)


async def test_a_handler_may_close_its_own_connection(build: Build) -> None:
    world = World(build)

    @world.service.call("r")
    async def last(request):
        world.end_session()
        world.driver.link_lost(None)
        await world.driver.close()
        return b"bye"

    world.session.events = [world.request()]
    world.driver.received(b"")
    await until(lambda: not world.driver.exchanges.tasks)
    assert world.session.items(2) == [b"bye"]


async def test_session_gets_the_kind_of_a_route(build: Build) -> None:
    world = World(build)
    world.service.stream("s")(lambda request: [])
    assert world.session.kind_of("s").name == "STREAM"
    other = build.module("weirpool.aio.service").Service()
    world.driver.serve(other)
    assert world.session.kind_of("s") is None


async def test_confirmation_of_a_session_that_has_ended_does_not_wait(build: Build) -> None:
    # The refusal may arrive before the task that opened the link runs again.
    world = World(build)
    world.end_session(ValueError("rejected"))
    with pytest.raises(ValueError, match="rejected"):
        await world.driver.confirm()
