from __future__ import annotations

from typing import Any

import pytest

from tests.sim.stored import Disk, Log, Logs
from weirpool.core import write_ahead
from weirpool.errors import ProtocolError, SessionStoreError, SetupRejected
from weirpool.events import Closed, Established, Failed, ItemReceived, Requested
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.protocols import client_session, detectors
from weirpool.settings import Settings
from weirpool.wire.rsocket.codec import Codec
from weirpool.wire.rsocket.frames import ResumeFrame

TOKEN = b"t" * 16
SETTINGS = Settings(resume=True)


class Pair:
    """A client and its server; `again` replaces the server after a kill."""

    def __init__(
        self, settings: Settings = SETTINGS, disk: Disk | None = None, client: Any = None, late: bool = False
    ) -> None:
        self.settings = settings
        self.disk = disk or Disk()
        self.logs = Logs(self.disk, late)
        self.accept = detectors("rsocket", settings, self.logs)
        self.client = client or client_session("rsocket", settings, random=TOKEN)
        self.connect()

    def connect(self, identity: bytes = b"me") -> None:
        acceptor = self.accept()
        acceptor.identity = identity
        acceptor.link_up(0.0)
        self.client.link_up(0.0)
        session = acceptor.receive(b"".join(self.client.take_output()), 0.0)
        assert session is not None
        self.server: Any = session
        self.drive()

    def again(self, settings: Settings | None = None) -> Pair:
        self.client.link_down(0.0, None)
        return Pair(settings or self.settings, self.disk, self.client)

    def drive(self) -> None:
        self.happened = list(self.server.take_events())
        while True:
            back, there = self.server.take_output(), self.client.take_output()
            if not back and not there:
                return
            for data in back:
                self.client.receive(data, 0.0)
            for data in there:
                self.server.receive(data, 0.0)
            self.happened += self.server.take_events()

    def call(self) -> int:
        stream_id: int = self.client.open(Kind.CALL, "x", Payload(b"?"))
        self.drive()
        return stream_id


def test_next_process_receives_the_set_up_event() -> None:
    client = client_session("rsocket", SETTINGS, setup=Payload(b"who", b"m"), random=TOKEN)
    pair = Pair(client=client)
    pair.call()
    event = next(event for event in pair.again().happened if isinstance(event, Established))
    assert (event.payload.data, event.payload.metadata) == (b"who", b"m")
    assert event.data_mime == SETTINGS.data_mime


def test_rejected_resumption_keeps_the_session() -> None:
    # THREATS 29
    pair = Pair()
    pair.call()
    codec = Codec()
    pair.client.link_down(0.0, None)
    pair.accept = detectors("rsocket", SETTINGS, Logs(pair.disk))
    for _ in range(2):
        acceptor = pair.accept()
        acceptor.identity = b"me"
        with pytest.raises(ProtocolError, match="is not kept"):
            acceptor.receive(codec.frame(ResumeFrame(TOKEN, 10**9, 0)), 0.0)
    pair.connect()
    assert pair.client.link_wanted


def broken(*_: object) -> Any:
    raise SessionStoreError("a secret place: damaged")


def test_failed_write_ends_the_session_before_output_and_events(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair()
    stream_id = pair.call()
    monkeypatch.setattr(Log, "append", broken)
    pair.server.send(stream_id, Payload(b"too early"))
    pair.drive()
    assert [type(event) for event in pair.client.take_events()] == [Established, Failed, Closed]
    assert isinstance(pair.happened[-1].error, SessionStoreError)
    assert not pair.disk.logs

    pair = Pair()
    monkeypatch.undo()
    pair.call()
    monkeypatch.setattr(Log, "append", broken)
    pair.call()
    assert not any(isinstance(event, Requested) for event in pair.happened)
    assert isinstance(pair.happened[-1], Closed)


def test_clients_without_resumption_write_nothing() -> None:
    pair = Pair(client=client_session("rsocket", Settings()))
    pair.server.send(pair.call(), Payload(b"!"))
    pair.drive()
    assert pair.disk.writes == 0
    assert not pair.server.durable.kept


def test_keepalives_without_changes_write_nothing() -> None:
    pair = Pair()
    pair.call()
    writes = pair.disk.writes
    for _ in range(3):
        pair.client.confirm()
        pair.drive()
    assert pair.disk.writes == writes


def test_ended_session_removes_its_log() -> None:
    pair = Pair()
    pair.call()
    assert pair.disk.logs and pair.server.durable.kept
    pair.client.close(0.0, SessionStoreError("enough"))
    pair.drive()
    assert not pair.disk.logs and not pair.server.durable.kept


def test_detached_session_is_resumed_by_the_next_process() -> None:
    pair = Pair()
    pair.call()
    pair.server.durable.detach()
    pair.server.durable.detach()
    assert not pair.server.durable.kept
    again = pair.again()
    assert again.server.durable.kept and again.client.link_wanted


def test_leases_are_granted_again() -> None:
    settings = Settings(resume=True, lease=True)
    pair = Pair(settings)
    pair.call()
    again = pair.again()
    assert any(type(event).__name__ == "LeaseGranted" for event in again.client.take_events()[-3:])
    again.call()


def test_requests_of_the_server_are_canceled() -> None:
    pair = Pair()
    stream_id = pair.server.open(Kind.STREAM, "mine", Payload(), 5)
    pair.drive()
    pair.client.take_events()
    again = pair.again()
    assert [type(event).__name__ for event in again.client.take_events()] == ["Canceled"]
    # Its id is not used again.
    assert again.server.open(Kind.CALL, "x", Payload()) > stream_id


def test_log_is_rewritten_when_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_ahead, "REWRITE_BYTES", 1000)
    pair = Pair()
    largest = 0
    for _ in range(200):
        pair.server.send(pair.call(), Payload(b"x" * 100))
        pair.drive()
        pair.client.confirm()
        pair.drive()
        pair.client.take_events()
        pair.server.receive(b"", 0.0)
        (records,) = pair.disk.logs.values()
        largest = max(largest, sum(map(len, records)))
    assert largest < 3000
    assert pair.again().client.link_wanted


def late_pair() -> Pair:
    """Return a pair whose server writes to disk on request; all output so far is durable."""
    disk = Disk()
    pair = Pair(disk=disk, late=True)
    settle(pair)
    return pair


def settle(pair: Pair) -> None:
    while pair.logs.sync():
        pair.drive()


def test_output_and_requests_wait_until_durable() -> None:
    pair = late_pair()
    pair.client.open(Kind.CALL, "x", Payload(b"?"))
    pair.drive()
    assert not any(isinstance(event, Requested) for event in pair.happened) and not pair.server.durable.settled
    assert pair.server.durable.withheld == {1}
    assert pair.logs.sync()
    pair.drive()
    assert not pair.server.durable.withheld
    (request,) = [event for event in pair.happened if isinstance(event, Requested)]
    pair.server.send(request.stream_id, Payload(b"!"))
    assert pair.server.take_output() == []
    assert not pair.server.durable.settled
    assert pair.logs.sync()
    assert b"!" in b"".join(pair.server.take_output())
    assert pair.server.durable.settled and not pair.logs.sync()


def test_changes_during_a_write_are_one_record() -> None:
    pair = late_pair()
    before = pair.disk.writes
    for _ in range(9):
        pair.client.open(Kind.CALL, "x", Payload(b"?"))
        pair.drive()
    settle(pair)
    assert pair.disk.writes == before + 2
    assert pair.server.open_streams == 9


def test_watcher_is_called_when_storage_is_full_and_free() -> None:
    pair = late_pair()
    told: list[bool] = []
    pair.server.durable.watch(told.append)
    ids = [pair.client.open(Kind.CALL, "x", Payload(b"?")) for _ in range(3)]
    pair.drive()
    settle(pair)
    del told[:]
    for stream_id in ids:
        pair.server.send(stream_id, Payload(b"x" * SETTINGS.output_high_bytes))
        pair.server.take_output()
    assert told == [True]
    assert pair.logs.sync()
    assert told == [True, False]


def test_session_that_ends_during_a_write_sends_all_output() -> None:
    pair = late_pair()
    pair.client.open(Kind.FIRE, "x", Payload(b"fired"))
    pair.client.open(Kind.CALL, "x", Payload())
    pair.drive()
    pair.client.close(0.0, SessionStoreError("enough"))
    pair.drive()
    kinds = [event.kind for event in pair.happened if isinstance(event, Requested)]
    assert kinds == [Kind.FIRE, Kind.CALL]
    assert pair.logs.open_now
    settle(pair)
    assert not pair.disk.logs and not pair.logs.open_now


def test_session_rejected_during_a_write_sends_only_the_error() -> None:
    pair = late_pair()
    pair.client.open(Kind.CALL, "x", Payload())
    pair.client.confirm()
    pair.server.receive(b"".join(pair.client.take_output()), 0.0)
    assert pair.server.take_events() == pair.server.take_output() == []
    pair.server.close(0.0, SetupRejected("no"))
    frames = b"".join(pair.server.take_output())
    assert len(frames) == 3 + int.from_bytes(frames[:3], "big")


def test_session_is_detached_after_the_write() -> None:
    pair = late_pair()
    pair.call()
    pair.server.durable.detach()
    assert pair.logs.open_now
    pair.logs.sync()
    assert not pair.logs.open_now
    assert pair.again().client.link_wanted


def test_output_not_durable_at_link_loss_is_sent_again() -> None:
    pair = late_pair()
    stream_id = pair.call()
    settle(pair)
    pair.server.send(stream_id, Payload(b"!"))
    assert pair.server.take_output() == []
    pair.client.link_down(0.0, None)
    pair.server.link_down(0.0, None)
    pair.connect()
    settle(pair)
    assert [event.payload.data for event in pair.client.take_events() if isinstance(event, ItemReceived)] == [b"!"]


def test_many_waiting_requests_stop_reading() -> None:
    pair = Pair(Settings(resume=True, max_streams=3), late=True)
    settle(pair)
    for _ in range(4):
        pair.client.open(Kind.FIRE, "x", Payload())
        pair.drive()
    assert pair.server.full
    settle(pair)
    assert not pair.server.full
