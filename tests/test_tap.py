from __future__ import annotations

from weirpool import Connection, Kind, Outcome, Tap


def test_tap_methods_are_optional() -> None:
    tap, connection = Tap(), Connection("rsocket", "", True)
    answers = [
        tap.opened(connection),
        tap.closed(connection, None),
        tap.resumed(connection),
        tap.refused("127.0.0.1", "why"),
        tap.received(connection, b"in"),
        tap.sent(connection, b"out"),
        tap.stream_opened(connection, Kind.CALL, True),
        tap.stream_ended(connection, Kind.CALL, True, Outcome.COMPLETED),
        tap.request_queued(connection),
        tap.request_repeated(connection),
        tap.requests_refused(connection, 1),
        tap.items_received(connection, 1),
        tap.items_sent(connection, 1),
    ]
    assert answers == [None] * len(answers)


def test_outcomes_are_strings() -> None:
    assert [outcome.value for outcome in Outcome] == ["completed", "canceled", "rejected", "failed"]
