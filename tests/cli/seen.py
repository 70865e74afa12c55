"""A service that returns what it received in a request and in the set-up, for `weirpool serve`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from weirpool import Items, Metadata, Payload, Request, Service, Simple
from weirpool.aio.handlers import Next

service = Service()


def told(metadata: bytes | None) -> dict[str, Any]:
    """Return the content of composite metadata."""
    said = Metadata.decode(metadata)
    found: dict[str, Any] = {"entries": {str(mime): content.decode("latin-1") for mime, content in said.entries}}
    if said.auth is not None:
        secret = said.auth.password if isinstance(said.auth, Simple) else getattr(said.auth, "token", "")
        found["auth"] = [type(said.auth).__name__, getattr(said.auth, "username", ""), secret]
    if said.trace is not None:
        found["trace"] = [said.trace.trace_id, said.trace.span_id, said.trace.sampled, said.trace.debug]
    return found | {"mime": said.mime, "accept": list(said.accept), "route": said.route}


@service.intercept
async def look(request: Request, next: Next) -> Any:
    if request.route not in ("seen", "setup"):
        return await next(request)
    connection = request.connection
    if request.route == "seen":
        return Payload(json.dumps(told(request.payload.metadata)))
    said = {"data": connection.setup.data.decode(), "data_mime": connection.data_mime}
    said |= {"metadata_mime": connection.metadata_mime, "certificate": bool(connection.certificate)}
    return Payload(json.dumps(said | told(connection.setup.metadata)))


@service.call("seen")
def seen(request: Payload) -> Payload:
    return request


@service.call("setup")
def setup(request: Payload) -> Payload:
    return request


@service.channel("items")
async def items_seen(request: Payload, items: Items) -> AsyncIterator[Payload]:
    async for item in items:
        yield item


@service.push
def pushed(metadata: bytes) -> None:
    print(f"pushed {metadata.decode()}", flush=True)
