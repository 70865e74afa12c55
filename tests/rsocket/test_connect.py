"""How a client's session begins: its dialect, its token, and its checkpoint."""

from __future__ import annotations

import pytest

from weirpool import LocalError, Payload, Settings
from weirpool.protocols import client_session


def opening(protocol: str, settings: Settings, messages: bool = False) -> bytes:
    session = client_session(protocol, settings, setup=Payload(b"hello"), random=bytes(range(16)), messages=messages)
    session.link_up(0.0)
    return b"".join(session.take_output())


@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0"])
def test_messages_have_a_length_of_three_bytes(protocol: str) -> None:
    message = opening(protocol, Settings(), messages=True)
    assert int.from_bytes(message[:3]) == len(message) - 3


def test_length_may_count_itself() -> None:
    plain = opening("reactivesocket-0.2", Settings())
    counted = opening("reactivesocket-0.2", Settings(length_counts_itself=True))
    assert int.from_bytes(counted[:3]) == int.from_bytes(plain[:3]) + 3


def test_only_a_resumable_client_sends_its_token() -> None:
    assert bytes(range(16)) in opening("rsocket", Settings(resume=True))
    assert bytes(range(16)) not in opening("rsocket", Settings())


def test_invalid_checkpoint_is_refused() -> None:
    with pytest.raises(LocalError, match="checkpoint"):
        client_session("rsocket", Settings(resume=True), random=bytes(16), checkpoint=b"junk", secret=bytes(16))
