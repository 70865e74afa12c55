from __future__ import annotations

from collections.abc import Iterator

import pytest

import weirpool
from tests.bridging.worlds import bridged
from weirpool import ApplicationError, Payload, Service


async def test_call_that_a_protocol_merges_with_streams_is_found_once() -> None:
    seen: list[str] = []

    class Tap(weirpool.Tap):
        def stream_opened(self, connection: weirpool.Connection, kind: weirpool.Kind, ours: bool) -> None:
            seen.append(kind.name)

    service = Service()
    service.call("t.one")(lambda request: request.data)
    async with weirpool.serve(service, "rsocket+memory://up", taps=[Tap()]):
        async with weirpool.bridge("rsocket+memory://up", "reactive-streams+memory://between"):
            async with weirpool.connect("reactive-streams+memory://between") as peer:
                for _ in range(3):
                    assert (await peer.call("t.one", b"1")).data == b"1"
    assert seen == ["STREAM", "CALL", "CALL", "CALL"]


async def test_error_of_a_guessed_call_is_that_of_its_handler() -> None:
    async with bridged("river", "rsocket") as world:
        for _ in range(2):
            try:
                await world.peer.call("t.fail", b"1")
            except ApplicationError as error:
                assert error.message == "boom"
        assert world.counters.errors == {"0x301": 2}


async def test_stream_that_failed_after_items_is_not_repeated() -> None:
    service, count = Service(), [0]

    @service.stream("t.some")
    def some(request: Payload) -> Iterator[bytes]:
        count[0] += 1
        yield b"1"
        raise weirpool.Rejected(message="no more")

    async with weirpool.serve(service, "rsocket+memory://up"):
        async with weirpool.bridge("rsocket+memory://up", "river+memory://between"):
            async with weirpool.connect("river+memory://between") as peer:
                items = aiter(peer.stream("t.some", b"0"))
                assert (await anext(items)).data == b"1"
                with pytest.raises(ApplicationError, match="no more"):
                    await anext(items)
    assert count == [1]
