"""A trace is cut into trips, and counted."""

from __future__ import annotations

import pytest
from walk.trips import Step, measure

# A call that leaves and comes back; what each file does is nothing but to be entered.
TRACE = [
    Step("peer.py", "call"),
    Step("session.py", "open"),
    Step("peer.py"),
    Step("link.py", "write", "departure"),
    Step("peer.py"),
    Step(None, "run_once"),
    Step("link.py", "deliver", "arrival"),
    Step("session.py", "receive"),
    Step("dispatch.py", "begin"),
    Step("handlers.py", "echo", "handler", user=True),
    Step("dispatch.py"),
    Step("session.py", "send"),
    Step("link.py", "write", "departure"),
    Step("timers.py", "next"),
    Step("link.py", "deliver", "arrival"),
    Step("session.py", "receive"),
    Step("callers.py", "main", user=True),
]


def test_trip_has_the_files_that_it_enters() -> None:
    assert measure(TRACE).files == {
        "call -> socket": ["peer.py", "session.py"],
        "socket -> handler": ["dispatch.py", "handlers.py", "link.py", "session.py"],
        "handler -> socket": ["handlers.py", "session.py"],
        "socket -> caller": ["callers.py", "link.py", "session.py"],
    }


def test_file_more_on_a_trip_is_counted() -> None:
    longer = [*TRACE[:8], Step("detour.py", "visit"), *TRACE[8:]]
    before, after = measure(TRACE), measure(longer)
    assert len(after.files["socket -> handler"]) == len(before.files["socket -> handler"]) + 1
    assert after.calls == before.calls + 1
    assert after.changes == before.changes + 1


def test_changes_count_calls_and_returns_between_files_of_ours() -> None:
    # peer, session, peer, link, peer, link, session, dispatch, session, link, timers, link, session
    assert measure(TRACE).changes == 12


def test_calls_count_functions_of_ours() -> None:
    assert measure(TRACE).calls == 11


@pytest.mark.parametrize("name", ["<listcomp>", "<genexpr>"])
def test_comprehensions_do_not_count(name: str) -> None:
    longer = [*TRACE[:1], Step("peer.py", name), Step("peer.py"), *TRACE[1:]]
    assert measure(longer) == measure(TRACE)


def test_another_message_in_between_belongs_to_no_trip() -> None:
    acknowledged = [*TRACE[:14], Step("link.py", "write", "departure"), *TRACE[14:]]
    assert measure(acknowledged).files == measure(TRACE).files


@pytest.mark.parametrize("end", [0, 3, 6, 9, 12, 14])
def test_trace_that_ends_early_is_refused(end: int) -> None:
    with pytest.raises(ValueError, match="not the trace of a call"):
        measure(TRACE[:end])
