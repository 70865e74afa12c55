"""An audited service that answers only clients whose set-up has a token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import weirpool
from weirpool.aio.handlers import Next

service = weirpool.audited(weirpool.Service())


@service.intercept
async def guard(request: weirpool.Request, next: Next) -> Any:
    setup = weirpool.Metadata.decode(request.connection.setup.metadata)
    if setup.auth != weirpool.Bearer("t0ken"):
        raise weirpool.Rejected("the set-up has no valid token")
    return await next(request)


@service.stream("numbers")
def numbers(request: weirpool.Payload) -> Iterator[bytes]:
    for number in range(3):
        yield b"%d" % number
