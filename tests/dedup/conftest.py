"""What the tests of handlers that run once have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from weirpool import Connection
from weirpool.aio.setup import CURRENT


@pytest.fixture(autouse=True)
def client() -> Iterator[Connection]:
    """Tests outside of a server run as a handler of this client's request."""
    connection = Connection("rsocket", "192.0.2.1", False)
    token = CURRENT.set(connection)
    yield connection
    CURRENT.reset(token)
