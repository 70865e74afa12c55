"""A server for tests of raw ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import weirpool
from weirpool import Payload, Service
from weirpool.testing import Result

FAMILY = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams")
"""Protocols with demand and without numbered messages, for which every rule can be checked."""


CONFIRMED = "reactive-streams"
"""The protocol that confirms a subscription, so that rule 2.5 can be checked."""


def assert_kept(result: Result, protocol: str) -> None:
    skipped = protocol not in FAMILY or (result.rule.number == "2.5" and protocol != CONFIRMED)
    assert result.outcome == "kept" or (result.outcome == "skipped" and skipped), str(result)


@asynccontextmanager
async def counting(protocol: str = "rsocket") -> AsyncIterator[str]:
    """Serve a stream `count`, of as many items as its request says; yield the URL."""
    service = Service()

    @service.stream("tests.count")
    def count(request: Payload) -> list[bytes]:
        return [b"%d" % number for number in range(int(request.data))]

    async with weirpool.serve(service, f"{protocol}+memory://raw") as server:
        yield server.urls[0]
