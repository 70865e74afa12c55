from __future__ import annotations

import pytest

import weirpool.sync
from tests.sync.served import Watch, service_of
from weirpool import ConnectError, LocalError


def test_balancer_uses_all_nodes_and_those_that_are_added(watch: Watch) -> None:
    urls = ["rsocket+memory://one", "rsocket+memory://two"]
    with weirpool.sync.serve(service_of(watch), *urls), weirpool.sync.balance(urls[:1]) as balancer:
        assert [node.url for node in balancer.nodes] == urls[:1]
        balancer.add(urls[1])
        assert balancer.call("echo", b"x").data == b"x"
        assert [node.url for node in balancer.nodes] == urls
        balancer.remove(urls[0])
        assert [node.url for node in balancer.nodes] == urls[1:]
        assert "Balancer" in repr(balancer) and balancer.outstanding == 0
    assert balancer.closed


def test_balancer_without_nodes_is_refused() -> None:
    with pytest.raises(LocalError, match="at least one URL"):
        weirpool.sync.balance([])
    with pytest.raises(ConnectError):
        weirpool.sync.balance(["rsocket+memory://nobody"])
