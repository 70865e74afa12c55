"""Sessions and their logs. For servers that are killed, see tests/sim/test_river_restart.py."""

from __future__ import annotations

from tests.river.peers import body_of
from tests.river.test_stored_sessions import Kept
from weirpool.errors import SessionStoreError
from weirpool.events import Closed, Established, Requested
from weirpool.payload import Payload
from weirpool.wire.river.values import encode_value

ADD = {"serviceName": "demo", "procedureName": "add"}
ECHO = {"serviceName": "demo", "procedureName": "echo"}


def value(raw: Kept, of: object) -> Payload:
    return Payload(encode_value(of, raw.codec))


def late() -> Kept:
    raw = Kept()
    raw.logs.late = True
    return raw


def test_output_and_requests_wait_until_they_are_durable() -> None:
    raw = late()
    assert raw.shake() == [] and not raw.session.durable.settled and not raw.session.durable.kept
    raw.logs.sync()
    assert len(raw.said()) == 2 and raw.session.durable.settled and raw.session.durable.kept
    raw.say("a", 10, {}, **ADD)
    assert [type(event) for event in raw.events] == [Established] and raw.session.durable.withheld
    raw.logs.sync()
    raw.said()
    assert not raw.session.durable.withheld
    assert [type(event) for event in raw.events] == [Established, Requested]


def test_failed_write_ends_the_session_without_output() -> None:
    raw = late()
    raw.shake()
    _, done = raw.logs.asked.popleft()
    done(SessionStoreError("the disk is full"))
    assert raw.said() == []
    assert isinstance(raw.events[-1], Closed) and isinstance(raw.events[-1].error, SessionStoreError)
    assert raw.disk.logs == {}


def test_link_lost_during_a_write_loses_nothing() -> None:
    raw = Kept()
    raw.shake()
    raw.logs.late = True
    raw.say("a", 2, {}, **ECHO)
    raw.logs.sync()
    raw.said()
    raw.session.send(1, value(raw, 1))
    assert raw.said() == []
    raw.session.link_down(raw.now, None)
    session = raw.session
    raw.link()
    raw.shake(expected=1, sent=1)
    assert raw.session is session
    while raw.logs.sync():
        pass
    again = raw.said()
    assert [message.stream_id for message in again][-1] == "a"
    assert [message.seq for message in again] == [0, 1]


def test_watcher_is_called_when_the_disk_is_slow() -> None:
    raw = Kept()
    raw.shake()
    told: list[bool] = []
    raw.session.durable.watch(told.append)
    raw.logs.late = True
    raw.say("a", 2, {}, **ECHO)
    raw.session.request(1, 1)
    raw.logs.sync()
    raw.said()
    assert told == [False]
    raw.session.send(1, value(raw, "x" * 400_000))
    raw.said()
    assert told == [False]
    raw.session.send(1, value(raw, "x" * 400_000))
    raw.said()
    assert told == [False, True]
    raw.logs.sync()
    assert told == [False, True, False]


def test_streams_of_an_earlier_process_end() -> None:
    raw = Kept()
    raw.shake()
    raw.say("a", 10, {}, **ADD)
    raw.say("b", 2, {}, **ECHO)
    raw.restart()
    answer, *said = raw.shake(expected=1, sent=2)
    assert body_of(answer)["status"]["ok"]
    assert [(message.stream_id, message.control_flags, message.seq) for message in said] == [("a", 4, 1), ("b", 4, 2)]
    assert {body_of(message)["payload"]["code"] for message in said} == {"CANCEL"}
    # Later messages of its client for them are dropped, and a second restart does not end them again.
    assert raw.say("b", 0, {"msg": 1}, seq=2, ack=3) == []
    raw.restart()
    (answer,) = raw.shake(expected=3, sent=2)
    assert body_of(answer)["status"]["ok"]


def test_detached_session_stays_on_the_disk() -> None:
    raw = Kept()
    raw.shake()
    raw.session.durable.detach()
    assert not raw.session.durable.kept and len(raw.disk.logs) == 1
    raw.restart()
    assert body_of(raw.shake(expected=1)[0])["status"]["ok"]
