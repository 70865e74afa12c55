from __future__ import annotations

import pytest

from tests.river.peers import Duo, Raw, messages
from weirpool.errors import ApplicationError, LinkLost, SessionClosed
from weirpool.kinds import Kind


def test_ids_are_never_reused() -> None:
    duo = Duo()
    duo.client.take_output()
    for _ in range(50):
        duo.client._outbound.send_control(b"{}")
    ids = [message.id for message in messages(duo.client.take_output())]
    assert len(set(ids)) == 50


@pytest.mark.parametrize("error", [None, LinkLost("gone")])
def test_streams_fail_before_closed(error: Exception | None) -> None:
    duo = Duo()
    numbers = [duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1) for _ in range(3)]
    duo.client._finish(error)
    duo.client._finish(error)
    *failed, closed = duo.client.take_events()[1:] if duo.client._events[0].stream_id == 0 else duo.client.take_events()
    assert [event.stream_id for event in failed] == numbers
    assert closed.error is error  # type: ignore[attr-defined]
    for event in failed:
        reason = event.error  # type: ignore[attr-defined]
        if error is None:
            assert isinstance(reason, SessionClosed)
        else:
            assert isinstance(reason, ApplicationError) and reason.code == "UNEXPECTED_DISCONNECT"
            assert reason.__cause__ is error
    assert duo.client.next_timer() is None


def test_server_requests_acknowledgements_in_time() -> None:
    raw = Raw()
    raw.shake()
    heartbeats = 0
    for _ in range(3_000):
        heartbeats += sum(message.control_flags == 1 for message in raw.say("x", 4, {}))
    assert heartbeats == 2
