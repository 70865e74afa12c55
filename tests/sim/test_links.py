"""The link model, and timeouts on links that are slow, stall, or work in one direction only (THREATS 91)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.links import PIECE, Line, Pipe, Road
from weirpool.kinds import Kind
from weirpool.payload import Payload

WATCHED: dict[str, dict[str, Any]] = {
    "river": {},
    "rsocket": {"keepalive_interval": 1.0, "keepalive_lifetime": 2.0},
    "reactivesocket-0.2": {"keepalive_interval": 1.0, "keepalive_lifetime": 2.0},
}
LARGE = b'"' + b"x" * 500_000 + b'"'
SMALL = b'"x"'


def line(protocol: str, there: Road, back: Road, answer: bytes = SMALL, **settings: Any) -> Line:
    """Return a client and a server that answers calls, over equal links."""
    given = WATCHED[protocol] | settings
    return Line(
        protocol,
        lambda number: there,
        lambda number: back,
        client=given,
        server=given,
        answer=lambda event, session: session.send(event.stream_id, Payload(answer), True),
    )


def call(line: Line, request: bytes) -> None:
    assert line.run(10.0, lambda: line.server is not None)
    line.client.open(Kind.CALL, "demo.large", Payload(request), 1)


def ended(line: Line) -> bool:
    return bool(line.of("client", "ItemReceived") or line.of("client", "Failed"))


# The model.


def test_bytes_take_their_time() -> None:
    pipe = Pipe(Road(rate=1000.0, delay=0.5))
    pipe.write(b"x" * 2_000, 10.0)
    assert (pipe.next(), pipe.waiting(11.9), pipe.taken(11.9)) == (12.5, 2_000, 0)
    assert list(pipe.arrived(12.4)) == []
    assert (list(pipe.arrived(12.5)), pipe.waiting(12.5), pipe.taken(12.5)) == ([b"x" * 2_000], 0, 2_000)


def test_a_buffer_in_between_takes_bytes_at_once_and_passes_them_on_slowly() -> None:
    pipe = Pipe(Road(rate=float(PIECE), buffer=PIECE))
    pipe.write(b"x" * 3 * PIECE, 0.0)
    assert [(pipe.waiting(at), pipe.taken(at)) for at in (0.5, 1.0, 2.0, 3.0)] == [
        (2 * PIECE, PIECE),
        (PIECE, 2 * PIECE),
        (0, 3 * PIECE),
        (0, 3 * PIECE),
    ]


@pytest.mark.parametrize("cut", [0, 1, PIECE, PIECE + 1])
def test_a_link_breaks_after_any_byte(cut: int) -> None:
    pipe = Pipe(Road(cut=cut))
    for _ in range(3):
        pipe.write(b"x" * PIECE, 0.0)
    arrived = list(pipe.arrived(0.0))
    assert arrived[-1] is None and sum(len(data) for data in arrived[:-1] if data is not None) == cut


def test_a_link_that_stalls_holds_the_rest_for_good() -> None:
    pipe = Pipe(Road(stall=10))
    pipe.write(b"x" * 10, 0.0)
    pipe.write(b"y" * 10, 0.0)
    assert (list(pipe.arrived(1e9)), pipe.waiting(1e9), pipe.taken(1e9)) == ([b"x" * 10], 10, 10)


# Timeouts.


@pytest.mark.parametrize("protocol", WATCHED)
@pytest.mark.parametrize(("request_", "answer"), [(LARGE, SMALL), (SMALL, LARGE), (LARGE, LARGE)])
def test_a_message_that_takes_longer_than_the_watchdog_arrives(protocol: str, request_: bytes, answer: bytes) -> None:
    # THREATS 91
    slow = Road(rate=50_000.0, delay=0.1)
    lab = line(protocol, slow, slow, answer)
    call(lab, request_)
    assert lab.run(60.0, lambda: ended(lab))
    assert [event.payload.data for event in lab.of("client", "ItemReceived")] == [answer]
    assert lab.links == 1 and not lab.of("server", "Unlinked")


@pytest.mark.parametrize("protocol", WATCHED)
@pytest.mark.parametrize("stalled", ["there", "back", "both"])
def test_a_link_that_moves_no_more_is_found_dead(protocol: str, stalled: str) -> None:
    # THREATS 91: within a large message, while megabytes wait.
    stops = Road(rate=50_000.0, stall=100_000)
    moves = Road(rate=50_000.0)
    there, back = (stops if stalled in (way, "both") else moves for way in ("there", "back"))
    lab = line(protocol, there, back, LARGE, resume=False)
    call(lab, LARGE)
    begun = lab.now
    # Two seconds until it stalls, then a timeout of two seconds, plus the interval of the checks.
    assert lab.run(30.0, lambda: lab.links > 1 or ended(lab))
    assert lab.now - begun < 2.0 + 10.0 + (10.0 if stalled == "back" else 0.0)


@pytest.mark.parametrize("protocol", WATCHED)
def test_what_hangs_is_found_dead_though_its_system_takes_heartbeats(protocol: str) -> None:
    # Nothing is received, and intermediate buffers accept all output.
    lab = line(protocol, Road(delay=0.3), Road(delay=0.3))
    assert lab.run(10.0, lambda: lab.server is not None)
    lab.run(0.5)
    lab.hangs = True
    begun = lab.now
    assert lab.run(30.0, lambda: lab.links > 1 or bool(lab.of("client", "Closed")))
    assert lab.now - begun < 5.0


@pytest.mark.parametrize("protocol", WATCHED)
def test_a_server_that_has_forgotten_everything_ends_the_call(protocol: str) -> None:
    slow = Road(rate=50_000.0, delay=0.1)
    lab = line(protocol, slow, slow, resume=True)
    call(lab, SMALL)
    assert lab.run(10.0, lambda: ended(lab))
    lab.client.open(Kind.CALL, "demo.large", Payload(LARGE), 1)
    lab.run(3.0)
    lab.restart()
    assert lab.run(60.0, lambda: bool(lab.of("client", "Failed")))
    assert lab.of("client", "Closed")
