"""An audited service that answers only clients whose set-up has a token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import penstock
from penstock.aio.handlers import Next

service = penstock.audited(penstock.Service())


@service.intercept
async def guard(request: penstock.Request, next: Next) -> Any:
    setup = penstock.Metadata.decode(request.connection.setup.metadata)
    if setup.auth != penstock.Bearer("t0ken"):
        raise penstock.Rejected("the set-up has no valid token")
    return await next(request)


@service.stream("numbers")
def numbers(request: penstock.Payload) -> Iterator[bytes]:
    for number in range(3):
        yield b"%d" % number
