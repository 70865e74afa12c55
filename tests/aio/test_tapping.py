from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.aio.taps import Notes
from weirpool import (
    Canceled,
    Connection,
    Kind,
    LimitExceeded,
    LinkLost,
    Outcome,
    Payload,
    PayloadRun,
    RefusalCause,
    Rejected,
    SetupRejected,
    Tap,
    events,
)
from weirpool.aio import tapping
from weirpool.aio.tapping import OBSERVED, TappedSession, cause_of, outcome_of
from weirpool.events import Closed, Completed, Established, Failed, ItemReceived, Requested, RunReceived
from weirpool.rsocket.session import RSocketSession
from weirpool.session import Session


class Scripted:
    """A session that accepts every verb and returns what a test has set."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.output: list[bytes] = []
        self.link_wanted = True
        self.open_streams = 7
        self.refused = 0
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in set(dir(Session)):
            raise AttributeError(name)
        return lambda *arguments: self.told.append((name, *arguments)) or 1

    def take_events(self) -> list[Any]:
        happened, self.events = self.events, []
        return happened

    def take_output(self) -> list[bytes]:
        output, self.output = self.output, []
        return output


def tapped(is_client: bool = True, *taps: Tap) -> tuple[Scripted, TappedSession, Notes]:
    inner, notes = Scripted(), Notes()
    session = TappedSession(inner, Connection("rsocket", "place", is_client), [notes, *taps])  # type: ignore[arg-type]
    session.attached()
    return inner, session, notes


def happen(inner: Scripted, session: TappedSession, *happened: Any) -> None:
    inner.events += happened
    assert session.take_events() == list(happened)


def test_refused_requests_are_reported_by_their_number() -> None:
    refused: list[int] = []

    class Counts(Tap):
        def requests_refused(self, connection: Connection, count: int) -> None:
            refused.append(count)

    inner, session, _ = tapped(False, Counts())
    happen(inner, session, Established(Payload(), "", ""))
    inner.refused = 3
    happen(inner, session)
    happen(inner, session)
    inner.refused = 4
    happen(inner, session)
    assert refused == [3, 1]


def asked(stream_id: int, kind: Kind, done: bool = True) -> Requested:
    return Requested(stream_id, kind, "r", Payload(), 1, done)


def test_every_method_of_a_session_is_there() -> None:
    inner, session, _ = tapped()
    for name in [name for name in vars(Session) if not name.startswith("_")]:
        assert hasattr(session, name), name
    assert set(OBSERVED) <= set(dir(Session)) & set(dir(RSocketSession))
    assert (session.link_wanted, session.open_streams) == (True, 7)
    session.request(1, 5)  # type: ignore[attr-defined]
    assert inner.told == [("request", 1, 5)]


@pytest.mark.parametrize("what", ["opened", "stream_ended", "received", "items_sent", "items_received"])
def test_nothing_is_recorded_for_undefined_tap_methods(what: str) -> None:
    told: list[str] = []
    one = type("One", (Tap,), {what: lambda self, *arguments: told.append(what)})()
    inner, observed = Scripted(), {name for name, methods in OBSERVED.items() if what in methods}
    session = TappedSession(inner, Connection("rsocket", "place", True), [one])  # type: ignore[arg-type]
    session.attached()
    forwarded = {name for name in OBSERVED if name in vars(session)}
    assert forwarded == set(OBSERVED) - observed
    session.receive(b"x", 0.0)
    session.send(session.open(Kind.CHANNEL, "r", Payload(), 1), Payload())
    happen(inner, session, ItemReceived(1, Payload(), True))
    session.complete(1)
    session.take_output()
    assert told == [what]


def test_a_client_is_open_with_its_link_and_a_server_with_its_set_up() -> None:
    _, _, client = tapped()
    assert client.told == [("opened",)]
    inner, session, server = tapped(False)
    session.arrived(b"setup")
    assert (server.told, server.bytes["received"]) == ([], b"")
    happen(inner, session, Established(Payload(b"me"), "m", "d"), asked(1, Kind.FIRE))
    assert [told[0] for told in server.told] == ["opened", "stream_opened", "stream_ended"]
    assert server.bytes["received"] == b"setup"
    (connection,) = server.connections
    assert (connection.setup, connection.metadata_mime, connection.data_mime) == (Payload(b"me"), "m", "d")


def test_another_link_is_a_resumption() -> None:
    inner, session, notes = tapped()
    session.attached()
    happen(inner, session, Closed(None))
    assert notes.told == [("opened",), ("resumed",), ("closed", None)]


def test_a_set_up_that_is_refused_opens_nothing() -> None:
    inner, session, notes = tapped(False)
    happen(inner, session, Closed(LimitExceeded("too much")))
    assert notes.told == [("refused", "place", "too much")]


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (None, RefusalCause.LOST),
        (LinkLost("cut"), RefusalCause.LOST),
        (LimitExceeded("too much"), RefusalCause.INVALID),
        (SetupRejected("not you", 3), RefusalCause.REJECTED),
        (SetupRejected.full("max_connections_per_address (1) are open", 3), RefusalCause.CLIENT_LIMIT),
        (SetupRejected.closes(3), RefusalCause.CLOSING),
    ],
)
def test_refusal_has_a_cause(error: Exception | None, cause: RefusalCause) -> None:
    assert cause_of(error) is cause
    inner, session, notes = tapped(False)
    happen(inner, session, Closed(error))
    [(_, _, reason)] = notes.told
    assert (reason, reason.cause) == (str(error or "the link was closed"), cause)


class Timed(Tap):
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def request_ended(self, connection: Connection, *arguments: Any) -> None:
        self.told.append(arguments)


def test_durations_last_until_both_halves_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    monkeypatch.setattr(tapping, "perf_counter", lambda: now[0])
    tap = Timed()
    inner, session, _ = tapped(False, tap)
    session.has_handler = lambda kind, route: (kind, route) == (Kind.CHANNEL, "r")
    happen(inner, session, Established(Payload(), "m", "d"), asked(1, Kind.CHANNEL, False), asked(3, Kind.FIRE))
    now[0] = 11.0
    happen(inner, session, Completed(1))
    assert tap.told == []
    now[0] = 12.5
    session.complete(1)
    assert tap.told == [(Kind.CHANNEL, False, "r", 2.5, Outcome.COMPLETED)]


@pytest.mark.parametrize(
    ("route", "known", "shown"),
    [("r", True, "r"), ("r", False, None), ("r" * 255, True, "r" * 255), ("r" * 256, True, None)],
)
def test_only_routes_of_handlers_are_told(route: str, known: bool, shown: str | None) -> None:
    # THREATS 103
    tap = Timed()
    inner, session, _ = tapped(False, tap)
    session.has_handler = lambda kind, asked: known
    happen(inner, session, Established(Payload(), "m", "d"), Requested(1, Kind.CALL, route, Payload(), 1, True))
    session.fail(1, Rejected())
    [(kind, ours, told, _, outcome)] = tap.told
    assert (kind, ours, told, outcome) == (Kind.CALL, False, shown, Outcome.REJECTED)


def test_routes_of_own_requests_are_not_told() -> None:
    tap = Timed()
    inner, session, _ = tapped(True, tap)
    session.has_handler = lambda kind, route: True
    stream_id = session.open(Kind.CALL, "user-17", Payload(), 1)
    happen(inner, session, ItemReceived(stream_id, Payload(), True))
    [(kind, ours, told, _, outcome)] = tap.told
    assert (kind, ours, told, outcome) == (Kind.CALL, True, None, Outcome.COMPLETED)


def test_bytes_and_items_are_reported_in_batches() -> None:
    inner, session, notes = tapped()
    stream_id = session.open(Kind.CHANNEL, "r", Payload())
    for _ in range(3):
        session.send(stream_id, Payload(b"x"))
    run = PayloadRun.of([Payload(b"a"), Payload(b"b")])
    session.send_run(stream_id, run)
    assert notes.of("items_sent") == []
    inner.output = [b"one", b"two"]
    assert session.take_output() == [b"one", b"two"]
    session.take_output()
    assert notes.of("items_sent") == [("items_sent", 4)]
    session.receive(b"in", 0.0)
    happen(inner, session, RunReceived(stream_id, run), ItemReceived(stream_id, Payload(), False))
    assert notes.of("items_received") == [("items_received", 3)]
    assert notes.bytes == {"received": b"in", "sent": b"onetwo"}
    assert ("receive", b"in", 0.0, 0) in inner.told


def test_streams_of_ours_end_as_they_do() -> None:
    inner, session, notes = tapped()
    outcomes = []
    for kind, ending in [
        (Kind.CALL, lambda: happen(inner, session, ItemReceived(1, Payload(), True))),
        (Kind.CALL, lambda: happen(inner, session, Failed(1, Rejected()))),
        (Kind.CALL, lambda: session.cancel(1)),
        (Kind.STREAM, lambda: happen(inner, session, Completed(1))),
        (Kind.STREAM, lambda: happen(inner, session, Failed(1, ValueError()))),
        (Kind.STREAM, lambda: session.cancel(1)),
    ]:
        session.open(kind, "r", Payload(), 1)
        assert len(notes.of("stream_ended")) == len(outcomes)
        ending()
        outcomes.append(notes.of("stream_ended")[-1][3].value)
        assert notes.told[-1][:3] == ("stream_ended", kind, True) or notes.told[-1][0] == "items_received"
    assert outcomes == ["completed", "rejected", "canceled", "completed", "failed", "canceled"]
    assert len(notes.of("stream_opened")) == len(outcomes) == len(notes.of("stream_ended"))


def test_fired_stream_ends_at_once() -> None:
    inner, session, notes = tapped()
    session.open(Kind.FIRE, "r", Payload())
    happen(inner, session, asked(2, Kind.FIRE))
    ends = [told[2:] for told in notes.of("stream_ended")]
    assert ends == [(True, Outcome.COMPLETED), (False, Outcome.COMPLETED)]


def test_a_channel_is_over_when_both_halves_are() -> None:
    inner, session, notes = tapped()
    session.open(Kind.CHANNEL, "r", Payload(), 1)
    session.complete(1)
    assert notes.of("stream_ended") == []
    happen(inner, session, ItemReceived(1, Payload(), True))
    assert len(notes.of("stream_ended")) == 1
    # The response is complete, so the missing rest of the request is not a failure.
    session.open(Kind.UPLOAD, "r", Payload(), 1)
    happen(inner, session, ItemReceived(1, Payload(), True))
    session.fail(1, Canceled())
    session.open(Kind.CHANNEL, "r", Payload(), 1)
    happen(inner, session, events.Canceled(1, False), Completed(1))
    assert {told[3] for told in notes.of("stream_ended")} == {Outcome.COMPLETED}
    assert len(notes.of("stream_ended")) == 3


def test_streams_of_the_peer_end_as_they_do() -> None:
    inner, session, notes = tapped()
    happen(
        inner, session, asked(2, Kind.CALL), asked(4, Kind.STREAM), asked(6, Kind.CHANNEL, False), asked(8, Kind.CALL)
    )
    session.send(2, Payload(), True)
    happen(inner, session, events.Canceled(4, True))
    session.fail(8, Rejected())
    session.complete(6)
    assert len(notes.of("stream_ended")) == 3
    session.cancel(6)
    session.cancel(6)
    ends = [told[1:] for told in notes.of("stream_ended")]
    assert ends == [
        (Kind.CALL, False, Outcome.COMPLETED),
        (Kind.STREAM, False, Outcome.CANCELED),
        (Kind.CALL, False, Outcome.REJECTED),
        (Kind.CHANNEL, False, Outcome.COMPLETED),
    ]


def test_the_end_comes_once_and_after_all_items() -> None:
    inner, session, notes = tapped()
    session.open(Kind.CHANNEL, "r", Payload(), 1)
    session.send(1, Payload())
    error = LimitExceeded("too much")
    happen(inner, session, ItemReceived(1, Payload(), False), Failed(1, error), Closed(error))
    session.detached()
    kinds = [told[0] for told in notes.told]
    assert kinds == ["opened", "stream_opened", "stream_ended", "items_received", "items_sent", "closed"]
    assert notes.told[-1] == ("closed", error)
    inner.output = [b"last words"]
    session.take_output()
    assert notes.bytes["sent"] == b"last words"


def test_detach_is_reported_as_closed() -> None:
    _, session, notes = tapped()
    session.detached()
    assert notes.told == [("opened",), ("closed", None)]


def test_failing_tap_is_disabled(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Tap):
        calls = 0

        def received(self, connection: Connection, data: bytes) -> None:
            self.calls += 1
            raise ValueError("broken")

    broken = Broken()
    _, session, notes = tapped(True, broken)
    with caplog.at_level(logging.ERROR):
        session.receive(b"a", 0.0)
        session.receive(b"b", 0.0)
    assert (broken.calls, notes.bytes["received"]) == (1, b"ab")
    assert len(caplog.records) == 1


def test_empty_read_is_not_reported_to_taps() -> None:
    # A WebSocket passes on whole messages, and reports parts of them as empty reads.
    class Sizes(Tap):
        def received(self, connection: Connection, data: bytes) -> None:
            sizes.append(len(data))

    sizes: list[int] = []
    _, session, _ = tapped(True, Sizes())
    session.link_up(0.0)
    session.attached()
    session.receive(b"", 0.0)
    session.receive(b"ab", 0.0)
    assert sizes == [2]


def test_errors_are_outcomes() -> None:
    assert [outcome_of(error) for error in (Canceled(), Rejected(), KeyError())] == [
        Outcome.CANCELED,
        Outcome.REJECTED,
        Outcome.FAILED,
    ]
