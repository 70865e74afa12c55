from __future__ import annotations

import weirpool
from weirpool import Items, Payload, Service
from weirpool.kinds import Kind
from weirpool.load.measured import Measured
from weirpool.load.requests import Load, sender


async def test_metadata_of_the_request_is_not_sent_with_items() -> None:
    service = Service()
    seen: list[bytes | None] = []

    @service.upload("seen")
    async def upload(request: Payload, items: Items) -> bytes:
        seen.extend([item.metadata async for item in items])
        return request.metadata or b""

    load = Load(kind=Kind.UPLOAD, route="seen", payload=Payload(b"x", b"m"), items=2)
    measured = Measured(1, 1)
    async with weirpool.serve(service, "rsocket+memory://x") as server:
        async with weirpool.connect(server.urls[0]) as peer:
            await sender(load)(peer, measured, lambda: None)
    assert seen == [None, None]
    assert measured.items == 2
