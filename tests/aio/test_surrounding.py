from __future__ import annotations

from typing import Any

import msgspec

import weirpool
from weirpool import Payload, Service
from weirpool.aio.surrounding import surround, surrounding_of


class Order(msgspec.Struct):
    """An order."""

    id: int


def around(begin: Any, nothing: Any) -> Any:
    """Pass the data of requests, and let requests with metadata of their own pass only once."""

    async def handle(request: Payload) -> Any:
        if b"skip" in (request.metadata or b""):
            return nothing(request)
        return await begin(request, b"more")

    return handle


def test_others_have_no_surrounding() -> None:
    assert surrounding_of(around) is None


async def test_typed_handlers_are_surrounded_by_what_sees_payloads() -> None:
    service = Service()

    async def handle(order: Order, more: bytes) -> Order:
        return Order(order.id + len(more))

    async def raw(request: Payload, more: bytes) -> bytes:
        return request.data + more

    made = surround(handle, around)
    assert made.__name__ == "handle"
    service.call("typed")(made)
    service.call("raw")(surround(raw, around))
    settings = weirpool.Settings(data_mime="application/json")
    skip = [("application/octet-stream", b"skip")]
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        async with weirpool.connect(server.urls[0], settings=settings) as peer:
            assert (await peer.call("typed", b'{"id": 1}')).data == b'{"id":5}'
            assert (await peer.call("raw", b"some ")).data == b"some more"
            metadata = weirpool.Metadata("typed", entries=skip).encode()
            assert (await peer.call("", b'{"id": 1}', metadata=metadata)).data == b"null"
            metadata = weirpool.Metadata("raw", entries=skip).encode()
            assert (await peer.call("", b"some", metadata=metadata)).data == b""
