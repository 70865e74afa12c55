"""Crowds of calls: a server that admits few of them answers all, and clients that share a limit get equal shares."""

from __future__ import annotations

import pytest

from .crowd import PROTOCOLS, Crowd, Shared


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_call_of_a_crowd_is_answered_in_order_and_soon(protocol: str) -> None:
    crowd = Crowd(protocol, limit=20, seconds=0.05, cancels=0.1, seed=3)
    assert list(crowd.breaches()) == []
    assert crowd.most == 20 and crowd.refused > 0


def test_limit_converges_to_that_of_a_slow_peer() -> None:
    # 25 s of calls over a link with a round trip of 0.1 s.
    crowd = Crowd("rsocket", limit=50, seconds=0.2, delay=0.05, count=4_000)
    assert list(crowd.breaches()) == []
    # The burst is refused once, and then one call in some hundred.
    assert 3_950 <= crowd.refused <= 4_020


def test_clients_that_share_a_limit_get_equal_shares() -> None:
    assert list(Shared(clients=3, capacity=24, duration=60.0).breaches()) == []
