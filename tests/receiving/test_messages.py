from __future__ import annotations

import msgspec

from weirpool.receiving.messages import ABORT, COMMIT, STAGE, CommitRequest, Committed, Stage


def test_requests_are_json_that_any_client_can_write() -> None:
    request = b'{"route":"r","query":"q","batch":3,"stages":[{"id":"s","rows":2,"digest":"d"}]}'
    decoded = msgspec.json.decode(request, type=CommitRequest)
    assert decoded.stages == [Stage("s", 2, "d")]
    assert msgspec.json.encode(Committed(0, 2)) == b'{"first":0,"end":2,"repeated":false}'


def test_routes_are_reserved() -> None:
    assert all(route.startswith("weirpool.") for route in (STAGE, COMMIT, ABORT))
