"""Each row of River's tables of states, with a session that makes the transition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.river.peers import Duo, Raw
from weirpool.errors import LocalError
from weirpool.river.states import TRANSITIONS, LinkState, SessionState
from weirpool.wire.framing import framed
from weirpool.wire.river.values import encode_value

ADD = {"serviceName": "demo", "procedureName": "add"}
Step = tuple[Any, Callable[[], object]]


def served(open_streams: int = 0, draining: bool = False) -> Raw:
    raw = Raw()
    raw.shake()
    for number in range(open_streams):
        raw.say(f"s{number}", 10, {}, ack=1, **ADD)
    if draining:
        raw.session.close(raw.now)
    return raw


def client(linked: bool = True) -> Duo:
    """Return a client with a link, or one that waits for the response to its handshake."""
    duo = Duo()
    if not linked:
        duo.client.link_down(duo.now, None)
        duo.client.take_output()
        duo.client.link_up(duo.now)
    return duo


def refused(duo: Duo) -> None:
    status = {"ok": False, "reason": "no", "code": "REJECTED_BY_CUSTOM_HANDLER"}
    message = {"id": "m", "from": "SERVER", "to": "client-1", "seq": 0, "ack": 0, "streamId": "x", "controlFlags": 0}
    body = {"payload": {"type": "HANDSHAKE_RESP", "status": status}}
    duo.client.receive(framed(encode_value(message | body, "json")), duo.now)


def again(raw: Raw) -> None:
    raw.link()
    raw.shake()


def step(state: Any, cause: str) -> Step:
    """Return a session in `state`, and a function that causes `cause`."""
    duo, waiting = client(), client(linked=False)
    idle, busy, draining = served(), served(1), served(1, draining=True)
    unlinked = Duo()
    unlinked.cut()
    given_up = served()
    session = given_up.session
    session.link_down(given_up.now, None)
    steps: dict[tuple[Any, str], Step] = {
        (SessionState.OPENED, "close, streams are open"): (busy.session, lambda: busy.session.close(busy.now)),
        (SessionState.OPENED, "close, no stream is open"): (idle.session, lambda: idle.session.close(idle.now)),
        (SessionState.OPENED, "error"): (idle.session, lambda: idle.session.close(idle.now, LocalError("enough"))),
        (SessionState.DRAINING, "the last stream has ended"): (
            draining.session,
            lambda: draining.session.fail(1, KeyError()),
        ),
        (SessionState.DRAINING, "error"): (draining.session, lambda: draining.feed(framed(b"junk"))),
        (LinkState.DOWN, "connected (client)"): (unlinked.client, lambda: unlinked.client.link_up(unlinked.now)),
        (LinkState.DOWN, "handshake accepted (server)"): (session, lambda: again(given_up)),
        (LinkState.HANDSHAKING, "handshake accepted"): (waiting.client, waiting.link),
        (LinkState.HANDSHAKING, "handshake refused"): (waiting.client, lambda: refused(waiting)),
        (LinkState.HANDSHAKING, "link lost"): (waiting.client, waiting.cut),
        (LinkState.HANDSHAKING, "no answer in time"): (
            waiting.client,
            lambda: waiting.client.handle_timer(waiting.now + 1.0),
        ),
        (LinkState.UP, "handshake on another link (server)"): (idle.session, lambda: again(idle)),
        (LinkState.UP, "link lost"): (duo.client, duo.cut),
        (LinkState.UP, "message out of order"): (idle.session, lambda: idle.say("a", 10, {}, seq=5, ack=1, **ADD)),
        (LinkState.UP, "silence"): (duo.client, lambda: duo.client.handle_timer(duo.now + 60.0)),
        (LinkState.UP, "session closed"): (duo.client, lambda: duo.client.close(duo.now)),
    }
    return steps[state, cause]


def state_of(session: Any, kind: type) -> int:
    return int(session._state if kind is SessionState else session._link.state)


@pytest.mark.parametrize(("before", "cause"), TRANSITIONS, ids=str)
def test_each_row_happens(before: SessionState | LinkState, cause: str) -> None:
    session, happen = step(before, cause)
    assert state_of(session, type(before)) == before
    happen()
    assert state_of(session, type(before)) == TRANSITIONS[before, cause]


def test_closed_session_stays_closed() -> None:
    raw = served(1)
    raw.session.close(raw.now, LocalError("enough"))
    raw.session.close(raw.now)
    raw.session.link_down(raw.now, None)
    assert (raw.session.open_streams, state_of(raw.session, SessionState)) == (0, SessionState.CLOSED)
    assert not any(state is SessionState.CLOSED for state, _ in TRANSITIONS)
