"""A served service, and a peer of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import weirpool.sync
from tests.sync.served import Watch, service_of
from weirpool import Settings


@pytest.fixture
def watch() -> Watch:
    """What the service of this test has seen."""
    return Watch()


@pytest.fixture
def url(watch: Watch) -> Iterator[str]:
    """The URL of a service that is served."""
    with weirpool.sync.serve(service_of(watch), "rsocket+tcp://127.0.0.1:0") as server:
        yield server.urls[0]


@pytest.fixture
def peer(url: str) -> Iterator[weirpool.sync.Peer]:
    """A peer of the service."""
    with weirpool.sync.connect(url, settings=Settings(data_mime="application/json")) as peer:
        yield peer
