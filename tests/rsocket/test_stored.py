from __future__ import annotations

from typing import Any

import pytest

from penstock.dialects import acceptors, client_session
from penstock.errors import ProtocolError, SessionStoreError
from penstock.events import Closed, Established, Failed, Requested
from penstock.kinds import Kind
from penstock.payload import Payload
from penstock.rsocket import stored
from penstock.settings import Settings
from penstock.wire.frames import ResumeFrame
from penstock.wire.rsocket_v1 import RSocketV1
from tests.sim.test_restart import Disk, Log, Logs

TOKEN = b"t" * 16
SETTINGS = Settings(resume=True)


class Pair:
    """A client, and the server that it is connected to; `again` is what comes after a kill."""

    def __init__(self, settings: Settings = SETTINGS, disk: Disk | None = None, client: Any = None) -> None:
        self.settings = settings
        self.disk = disk or Disk()
        self.accept = acceptors("rsocket", settings, Logs(self.disk))
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


def test_a_token_does_not_lie_readable_in_the_log() -> None:
    # THREATS 28
    pair = Pair()
    pair.call()
    (name, records), *_ = pair.disk.logs.items()
    assert TOKEN.hex() not in name
    assert TOKEN not in b"".join(records)
    assert name == stored.name_of(TOKEN) != stored.name_of(TOKEN + b"t")


def test_the_next_process_is_told_of_the_set_up_again() -> None:
    client = client_session("rsocket", SETTINGS, setup=Payload(b"who", b"m"), random=TOKEN)
    pair = Pair(client=client)
    pair.call()
    event = next(event for event in pair.again().happened if isinstance(event, Established))
    assert (event.payload.data, event.payload.metadata) == (b"who", b"m")
    assert event.data_mime == SETTINGS.data_mime


def test_somebody_else_does_not_get_the_session_and_its_owner_does() -> None:
    # THREATS 28
    pair = Pair()
    pair.call()
    pair.client.link_down(0.0, None)
    pair.accept = acceptors("rsocket", SETTINGS, Logs(pair.disk))
    with pytest.raises(ProtocolError, match="no session of that token"):
        pair.connect(b"thief")
    pair.client.link_down(0.0, None)
    pair.connect(b"me")
    assert pair.client.link_wanted


def test_a_resumption_that_is_refused_leaves_the_session_to_be_resumed() -> None:
    # THREATS 29
    pair = Pair()
    pair.call()
    codec = RSocketV1()
    pair.client.link_down(0.0, None)
    pair.accept = acceptors("rsocket", SETTINGS, Logs(pair.disk))
    for _ in range(2):
        acceptor = pair.accept()
        acceptor.identity = b"me"
        with pytest.raises(ProtocolError, match="is not kept"):
            acceptor.receive(codec.frame(ResumeFrame(TOKEN, 10**9, 0)), 0.0)
    pair.connect()
    assert pair.client.link_wanted


def test_a_damaged_session_is_refused() -> None:
    pair = Pair()
    pair.call()
    for records in ([], [b"junk"], None):
        pair.disk.logs[stored.name_of(TOKEN)] = records or []
        logs = Logs(pair.disk)
        if records is None:
            logs.open = broken  # type: ignore[method-assign]
        pair.client.link_down(0.0, None)
        pair.accept = acceptors("rsocket", SETTINGS, logs)
        with pytest.raises(ProtocolError, match="cannot be read"):
            pair.connect()


def broken(*_: object) -> Any:
    raise SessionStoreError("a secret place: damaged")


def test_a_disk_that_fails_ends_the_session_before_anything_is_said_or_done(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair()
    stream_id = pair.call()
    monkeypatch.setattr(Log, "append", broken)
    pair.server.send(stream_id, Payload(b"too early"))
    pair.drive()
    assert [type(event) for event in pair.client.take_events()] == [Failed, Closed]
    assert isinstance(pair.happened[-1].error, SessionStoreError)
    assert not pair.disk.logs

    pair = Pair()
    monkeypatch.undo()
    pair.call()
    monkeypatch.setattr(Log, "append", broken)
    pair.call()
    assert not any(isinstance(event, Requested) for event in pair.happened)
    assert isinstance(pair.happened[-1], Closed)


def test_clients_that_do_not_resume_cost_nothing() -> None:
    pair = Pair(client=client_session("rsocket", Settings()))
    pair.server.send(pair.call(), Payload(b"!"))
    pair.drive()
    assert pair.disk.writes == 0
    assert not pair.server.kept


def test_keepalives_cost_nothing_where_nothing_has_changed() -> None:
    pair = Pair()
    pair.call()
    writes = pair.disk.writes
    for _ in range(3):
        pair.client.confirm()
        pair.drive()
    assert pair.disk.writes == writes


def test_a_session_that_ends_leaves_nothing() -> None:
    pair = Pair()
    pair.call()
    assert pair.disk.logs and pair.server.kept
    pair.client.close(0.0, SessionStoreError("enough"))
    pair.drive()
    assert not pair.disk.logs and not pair.server.kept


def test_a_session_that_is_left_may_be_resumed_by_the_next_process() -> None:
    pair = Pair()
    pair.call()
    pair.server.leave()
    pair.server.leave()
    assert not pair.server.kept
    again = pair.again()
    assert again.server.kept and again.client.link_wanted


def test_sessions_of_earlier_processes_count() -> None:
    # THREATS 30
    pair = Pair(Settings(resume=True, max_sessions=1))
    pair.call()
    other = client_session("rsocket", SETTINGS, random=b"o" * 16)
    refused = Pair(pair.settings, pair.disk, other)
    refused.drive()
    assert not other.link_wanted
    assert pair.again().client.link_wanted


def test_a_token_in_use_is_refused() -> None:
    # THREATS 27
    pair = Pair()
    pair.call()
    thief = client_session("rsocket", SETTINGS, random=TOKEN)
    Pair(SETTINGS, pair.disk, thief)
    assert not thief.link_wanted
    assert pair.again().client.link_wanted


def test_leases_are_given_again() -> None:
    settings = Settings(resume=True, lease=True)
    pair = Pair(settings)
    pair.call()
    again = pair.again()
    assert any(type(event).__name__ == "LeaseGranted" for event in again.client.take_events()[-3:])
    again.call()


def test_the_servers_own_requests_are_canceled() -> None:
    pair = Pair()
    stream_id = pair.server.open(Kind.STREAM, "mine", Payload(), 5)
    pair.drive()
    pair.client.take_events()
    again = pair.again()
    assert [type(event).__name__ for event in again.client.take_events()] == ["Canceled"]
    # Its number is not given twice.
    assert again.server.open(Kind.CALL, "x", Payload()) > stream_id


def test_a_log_is_written_anew_before_it_grows_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "REWRITE_BYTES", 1000)
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
