from __future__ import annotations

import pytest

from tests.rsocket.test_stored import SETTINGS, TOKEN, Pair, broken
from tests.sim.stored import Logs
from weirpool.errors import ProtocolError
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.protocols import client_session, detectors
from weirpool.rsocket.records import PARTIAL, RECEIVING, SENDING, Retained
from weirpool.rsocket.stored import StoredSessions, name_of
from weirpool.settings import Settings
from weirpool.wire.framing import Deframer, prefixed

FRAGMENTED = Settings(resume=True, fragment_bytes=64)


def test_log_does_not_contain_the_token() -> None:
    # THREATS 28
    pair = Pair()
    pair.call()
    (name, records), *_ = pair.disk.logs.items()
    assert TOKEN.hex() not in name
    assert TOKEN not in b"".join(records)
    assert name == name_of(TOKEN) != name_of(TOKEN + b"t")


def logged(pair: Pair) -> dict[int, int]:
    """Return the open halves of streams, as the log has them."""
    return Retained(pair.disk.logs[name_of(TOKEN)], 1_000_000, 3).streams


def test_log_has_the_open_halves_of_streams() -> None:
    pair = Pair()
    call = pair.call()
    channel = pair.client.open(Kind.CHANNEL, "x", Payload(b"first"), 5)
    pair.drive()
    assert logged(pair) == {call: SENDING, channel: SENDING | RECEIVING}
    pair.server.send(channel, Payload(b"last"), True)
    pair.server.send(call, Payload(b"answer"), True)
    pair.drive()
    assert logged(pair) == {channel: RECEIVING}


def test_log_has_incomplete_requests_that_are_answered() -> None:
    pair = Pair(Settings(resume=True, fragment_bytes=64), client=client_session("rsocket", FRAGMENTED, random=TOKEN))
    call = pair.client.open(Kind.CALL, "x", Payload(b"?" * 100))
    pair.client.open(Kind.FIRE, "x", Payload(b"!" * 100))
    first, *_, fired, _ = Deframer().split(b"".join(pair.client.take_output()))
    pair.server.receive(prefixed(first) + prefixed(fired), 0.0)
    whole = pair.call()
    assert logged(pair) == {call: PARTIAL, whole: SENDING}


def test_session_is_forgotten_if_its_log_exists() -> None:
    pair = Pair()
    store = StoredSessions(SETTINGS, Logs(pair.disk))
    assert not store.add(TOKEN, pair.server)
    assert len(store) == 0


def test_only_the_owner_can_resume_a_session() -> None:
    # THREATS 28
    pair = Pair()
    pair.call()
    pair.client.link_down(0.0, None)
    pair.accept = detectors("rsocket", SETTINGS, Logs(pair.disk))
    with pytest.raises(ProtocolError, match="no session with this token"):
        pair.connect(b"thief")
    pair.client.link_down(0.0, None)
    pair.connect(b"me")
    assert pair.client.link_wanted


def test_damaged_session_is_refused() -> None:
    pair = Pair()
    pair.call()
    for records in ([], [b"junk"], None):
        pair.disk.logs[name_of(TOKEN)] = records or []
        logs = Logs(pair.disk)
        if records is None:
            logs.open = broken  # type: ignore[method-assign]
        pair.client.link_down(0.0, None)
        pair.accept = detectors("rsocket", SETTINGS, logs)
        with pytest.raises(ProtocolError, match="cannot be read"):
            pair.connect()


def test_sessions_of_earlier_processes_count() -> None:
    # THREATS 30
    pair = Pair(Settings(resume=True, max_connections=0, max_sessions=1))
    pair.call()
    other = client_session("rsocket", SETTINGS, random=b"o" * 16)
    refused = Pair(pair.settings, pair.disk, other)
    refused.drive()
    assert not other.link_wanted
    assert pair.again().client.link_wanted


def test_token_in_use_is_refused() -> None:
    # THREATS 27
    pair = Pair()
    pair.call()
    thief = client_session("rsocket", SETTINGS, random=TOKEN)
    Pair(SETTINGS, pair.disk, thief)
    assert not thief.link_wanted
    assert pair.again().client.link_wanted
