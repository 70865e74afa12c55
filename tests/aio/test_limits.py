from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any, cast

import pytest

import weirpool
from tests.waiting import until
from weirpool import Admitted, Connection, Service, SetupRejected
from weirpool.aio import descriptors
from weirpool.aio.limits import WINDOW, Limits, RefusalCounter
from weirpool.rsocket.dialect import RSOCKET_1_0
from weirpool.session import Session
from weirpool.settings import Settings
from weirpool.tap import Refusal, RefusalCause
from weirpool.transports.places import SPARED_SECONDS
from weirpool.wire.rsocket.frames import ResumeFrame


def session(name: str) -> Session:
    return cast(Session, name)


class Silent:
    """A link whose first message has not been read."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.told: list[Refusal] = []

    def evict(self, reason: Refusal) -> None:
        self.told.append(reason)


def limits(**settings: Any) -> Limits:
    return Limits(Settings(max_connections=5, max_connections_per_address=2, max_sessions=2, **settings))


@pytest.mark.usefixtures("silence_spared")
def test_full_address_accepts_links_that_may_resume() -> None:
    # THREATS 94
    counts = limits()
    for name in "ab":
        counts.linked(session(name), "x")
    assert "max_connections_per_address (2) are open" in counts.full("x")
    assert not counts.full("y") and not counts.make_room("x", 0.0)
    links = [Silent("x"), Silent("x")]
    for link in links:
        counts.arrived(link, 0.0)
    assert "max_connections_per_address (2) links" in counts.make_room("x", 0.0)
    counts.identified(links[0])
    assert not counts.make_room("x", 0.0)


def test_a_session_without_a_link_is_no_connection() -> None:
    # THREATS 94
    counts = limits()
    for name in "abc":
        counts.linked(session(name), "x")
        assert counts.unlinked(session(name)) == ("a" if name == "c" else None)
    assert not counts.full("x")
    counts.ended(session("a"))
    # A session that reconnects no longer waits. If it waits again, it is the newest.
    counts.linked(session("b"), "y")
    assert counts.unlinked(session("b")) is None
    counts.linked(session("d"), "x")
    assert counts.unlinked(session("d")) == "c"


def test_links_lost_together_leave_max_sessions_waiting() -> None:
    # THREATS 94: none of the sessions to end has ended before the last link is lost.
    counts = limits()
    for name in "abcde":
        counts.linked(session(name), name)
    assert [counts.unlinked(session(name)) for name in "abcde"] == [None, None, "a", "b", "c"]
    for name in "abcde":
        counts.ended(session(name))
    assert not counts


def test_a_client_with_many_sessions_that_wait_loses_its_own() -> None:
    # THREATS 111: one client connects and goes away, again and again.
    counts = limits()
    counts.linked(session("honest"), "honest")
    assert counts.unlinked(session("honest")) is None
    ended = []
    for number in range(10):
        counts.linked(session(f"greedy {number}"), "greedy")
        ended.append(counts.unlinked(session(f"greedy {number}")))
    assert ended == [None, *(f"greedy {number}" for number in range(9))]
    counts.ended(session("honest"))
    counts.ended(session("greedy 9"))
    assert not counts


@pytest.fixture
def spare(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many descriptors clients may use: the last element. The process may have 100, and keeps 16 of them."""
    left = [84]
    monkeypatch.setattr(descriptors, "limit", lambda: 100)
    monkeypatch.setattr(descriptors, "spare", lambda: left[-1])
    return left


def test_one_address_leaves_descriptors_to_others(spare: list[int]) -> None:
    # THREATS 74, 111
    counts = Limits(Settings(max_connections_per_address=1_000))
    admitted = {"greedy": 0, "honest": 0}
    for address in admitted:
        for number in range(100):
            # Each link has taken its descriptor already.
            spare[-1] -= 1
            if counts.full(address):
                spare[-1] += 1
                break
            counts.linked(session(f"{address} {number}"), address)
            admitted[address] += 1
    assert admitted == {"greedy": 42, "honest": 21}
    assert "descriptors (100 of this process) are in use" in counts.full("greedy")
    counts.ended(session("greedy 0"))


@pytest.mark.usefixtures("silence_punished")
def test_silent_links_make_room_when_there_are_no_descriptors(spare: list[int]) -> None:
    # THREATS 74, 111
    counts = Limits(Settings())
    greedy = [Silent("greedy") for _ in range(10)]
    for link in (Silent("honest"), *greedy):
        assert counts.make_room(link.address, 0.0) is None
        counts.arrived(link, 0.0)
    # The link that was accepted last has a descriptor of the reserve.
    spare.append(-1)
    assert counts.make_room("honest", 0.0) is None
    assert [bool(link.told) for link in greedy] == [True] + [False] * 9
    # What is evicted is not closed at once: a part of the reserve is never used for that.
    spare.append(-9)
    assert "descriptors (100 of this process) are in use" in counts.make_room("honest", 0.0)
    assert sum(bool(link.told) for link in greedy) == 1


def test_without_silent_links_there_is_no_room(spare: list[int]) -> None:
    spare.append(-1)
    refusal = Limits(Settings()).make_room("x", 0.0)
    assert refusal is not None and refusal.cause is RefusalCause.LIMIT


def test_a_session_that_changes_its_link_counts_once() -> None:
    counts = limits()
    counts.linked(session("a"), "x")
    counts.linked(session("a"), "y")
    counts.linked(session("b"), "y")
    assert counts.full("y") and not counts.full("x")
    counts.ended(session("a"))
    counts.ended(session("b"))
    counts.ended(session("b"))
    assert not counts


def test_limits_are_empty_without_links_and_sessions() -> None:
    for count in (
        lambda counts: counts.arrived(Silent("x"), 0.0),
        lambda counts: counts.linked(session("a"), "x"),
        lambda counts: counts.unlinked(session("a")),
    ):
        counts = limits()
        assert not counts
        count(counts)
        assert counts


def test_session_without_a_principal_keeps_counting_for_its_latest_address() -> None:
    counts = limits()
    connection = Connection("river", "x", False)
    counts.linked(session("a"), "y")
    for name in "bc":
        counts.linked(session(name), "x")
    # The set-up of its second link, which comes from another address than the first one.
    counts.admitted(session("a"), connection, None)
    counts.linked(session("d"), "y")
    assert counts.full("x") and counts.full("y")


@pytest.mark.usefixtures("silence_spared")
def test_each_link_that_ends_makes_one_place() -> None:
    # THREATS 94
    counts = limits()
    first, _ = arrived(counts, "x", "x")
    counts.identified(first)
    arrived(counts, "x")
    assert counts.make_room("x", 0.0)
    for name in "ab":
        counts.linked(session(name), "x")
    counts.ended(session("a"))
    counts.linked(session("c"), "x")
    assert counts.full("x")


# Eviction.


OLD = SPARED_SECONDS


def arrived(counts: Limits, *addresses: str, at: float = 0.0) -> list[Silent]:
    links = [Silent(address) for address in addresses]
    for link in links:
        counts.arrived(link, at)
    return links


def test_oldest_silent_link_of_an_address_gives_its_place_up() -> None:
    # THREATS 95
    counts = limits()
    other, first, second = arrived(counts, "y", "x", "x")
    assert counts.make_room("x", OLD) is None
    (reason,) = first.told
    assert reason.cause is RefusalCause.CLIENT_LIMIT and "max_connections_per_address (2) links" in reason
    assert "for the longest time" in reason
    assert not other.told and not second.told
    # It no longer counts: there is one place, which no other link has to give up.
    assert counts.make_room("x", OLD) is None and not second.told


def test_oldest_silent_link_of_all_gives_its_place_up() -> None:
    # THREATS 94
    counts = limits()
    links = arrived(counts, *"abcde")
    assert counts.make_room("f", OLD) is None
    assert [len(link.told) for link in links] == [1, 0, 0, 0, 0]
    assert links[0].told[0].cause is RefusalCause.LIMIT and "max_connections (5) links" in links[0].told[0]
    counts.arrived(Silent("f"), OLD)
    assert counts.make_room("g", OLD) is None
    assert [len(link.told) for link in links] == [1, 1, 0, 0, 0]


def test_address_at_its_limit_costs_others_no_place() -> None:
    # THREATS 95
    counts = limits()
    older = arrived(counts, *"abc")
    own = arrived(counts, *"xx", at=1.0)
    # Both limits are reached.
    assert counts.make_room("x", 1.0 + OLD) is None
    assert [len(link.told) for link in older + own] == [0, 0, 0, 1, 0]


@pytest.mark.usefixtures("silence_spared")
def test_young_link_is_spared() -> None:
    counts = limits()
    links = arrived(counts, *"xx")
    refused = counts.make_room("x", OLD * 0.9)
    assert refused is not None and refused.cause is RefusalCause.CLIENT_LIMIT and "longest" not in refused
    assert not links[0].told and not links[1].told


def test_evicted_links_leave_no_trace() -> None:
    counts = limits()
    for number in range(20):
        now = number * OLD
        assert counts.make_room("x", now) is None
        counts.arrived(Silent("x"), now)
    assert len(counts._pending) == len(counts._pending_of["x"]) == 2
    for link in [*counts._pending._since]:
        counts.identified(link)
        counts.identified(link)
    assert not counts and not counts._pending_of


@pytest.mark.usefixtures("silence_spared")
def test_all_addresses_have_a_limit_together() -> None:
    counts = limits()
    for name in "abcde":
        counts.linked(session(name), name)
        counts.arrived(Silent(name), 0.0)
    assert "max_connections (5) are open" in counts.full("f")
    assert "max_connections (5)" in counts.make_room("f", 0.0)


def test_guesses_lock_out_and_junk_does_not(caplog: pytest.LogCaptureFixture) -> None:
    # THREATS 28, 95
    counts = limits(max_refusals_per_address=2)
    assert [counts.unrecognized("x", False, 0.0) for _ in range(4)] == [True, True, False, False]
    assert not counts.locked_out("x", 0.0) and not counts.make_room("x", 0.0)
    # They are counted separately.
    assert [counts.unrecognized("x", True, 0.0) for _ in range(3)] == [True, True, False]
    assert counts.locked_out("x", 0.0) and not counts.locked_out("y", 0.0) and not counts.make_room("x", 0.0)
    assert caplog.messages == [
        "x has reached max_refusals_per_address (2): for a while, its links cannot be logged when they are refused",
        "x has reached max_refusals_per_address (2): for a while, its links cannot resume a session",
    ]


def test_refused_links_are_logged_up_to_a_limit() -> None:
    counts = limits(max_refusals_per_address=2)
    assert [counts.refused("x", 0.0) for _ in range(4)] == [True, True, False, False]
    assert counts.refused("y", 0.0) and counts.refused("x", WINDOW)
    assert not counts.locked_out("x", 0.0) and counts.unrecognized("x", True, 0.0)


def test_a_lockout_drains_although_guesses_go_on() -> None:
    # THREATS 28, 95
    counts = limits(max_refusals_per_address=2)
    times = [second / 10 for second in range(1_200)]
    served = [now for now in times if not counts.locked_out("x", now) and counts.unrecognized("x", True, now)]
    assert len(served) == pytest.approx(2 + 2 * 120 / WINDOW, abs=1)
    assert max(later - earlier for earlier, later in pairwise(served)) < WINDOW / 2 + 0.2


# Principals.


def connection(address: str = "x") -> Connection:
    return Connection("rsocket", address, False)


def test_sessions_of_a_principal_do_not_count_for_their_address() -> None:
    # THREATS 95
    counts = limits()
    for name in "abcd":
        counts.linked(session(name), "x")
        here = connection()
        counts.admitted(session(name), here, Admitted(principal=name))
        assert (here.principal, here.counted_as) == (name, f"principal {name}")
    assert not counts.full("x")
    for name in "abcd":
        counts.ended(session(name))
    assert not counts


def test_principal_has_a_limit_from_all_addresses() -> None:
    # THREATS 95
    counts = limits()
    for name in "abc":
        counts.linked(session(name), name)
        here = connection(name)
        if name != "c":
            counts.admitted(session(name), here, Admitted(principal="bob"))
            continue
        with pytest.raises(
            SetupRejected, match=r"max_connections_per_address \(2\) are open, for principal bob"
        ) as full:
            counts.admitted(session(name), here, Admitted(principal="bob"))
        assert full.value.temporary and here.counted_as == "c"
    # It is asked again, and then no longer names the client.
    counts.admitted(session("a"), here := connection("a"), Admitted(principal="bob"))
    counts.admitted(session("a"), here, None)
    assert here.counted_as == "a"
    counts.admitted(session("c"), connection("c"), Admitted(principal="bob"))


def test_principal_that_is_an_address_does_not_count_for_it() -> None:
    # THREATS 95
    counts = limits()
    for name in "ab":
        counts.linked(session(name), "y")
        counts.admitted(session(name), connection("y"), Admitted(principal="x"))
    assert not counts.full("x")


def test_session_that_has_lost_its_link_meanwhile_is_not_counted() -> None:
    counts = limits()
    counts.linked(session("a"), "x")
    counts.unlinked(session("a"))
    here = connection()
    counts.admitted(session("a"), here, Admitted(principal="bob"))
    assert here.principal == "bob"
    counts.ended(session("a"))
    assert not counts


# Refusals.


def test_address_is_refused_after_the_limit_of_a_window() -> None:
    refusals = RefusalCounter(2)
    refusals.note("a", 100.0)
    assert not refusals.too_many("a", 100.0)
    refusals.note("a", 101.0)
    assert refusals.too_many("a", 102.0)
    assert not refusals.too_many("b", 102.0)
    assert not refusals.too_many("a", 100.0 + WINDOW)
    # One of two is forgotten after half of the window.
    refusals.note("a", 200.0)
    refusals.note("a", 200.0)
    assert refusals.too_many("a", 200.0 + WINDOW / 2 - 1)
    assert not refusals.too_many("a", 200.0 + WINDOW / 2 + 1)


def test_limit_of_one_refusal_allows_one() -> None:
    refusals = RefusalCounter(1)
    assert not refusals.too_many("a", 0.0)
    refusals.note("a", 0.0)
    assert refusals.too_many("a", 0.0)


def test_addresses_are_forgotten() -> None:
    refusals = RefusalCounter(2)
    for number in range(1_000):
        refusals.note(f"a{number}", float(number))
    assert len(refusals._counts) <= 2 * WINDOW + 1


@pytest.mark.parametrize(("limit", "address"), [(0, "a"), (1, "")])
def test_no_refusal_without_limit_or_address(limit: int, address: str) -> None:
    refusals = RefusalCounter(limit)
    for _ in range(10):
        refusals.note(address, 0.0)
    assert not refusals.too_many(address, 0.0)


async def guess(port: int) -> bytes:
    """Try to resume a session with a guessed token; return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(RSOCKET_1_0.codec().frame(ResumeFrame(b"guessed")))
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
        await until(writer.transport.is_closing)


async def test_address_guessing_tokens_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    # THREATS 28
    settings = Settings(max_refusals_per_address=3)
    async with weirpool.serve(Service(), "rsocket+tcp://127.0.0.1:0", settings=settings) as server:
        port = int(server.urls[0].rpartition(":")[2])
        answers = [await guess(port) for _ in range(5)]
        assert [b"there is no session with this token" in answer for answer in answers] == [True] * 3 + [False] * 2
        assert answers[3:] == [b"", b""]
    assert "max_refusals_per_address (3)" in caplog.text
