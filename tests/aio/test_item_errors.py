"""How errors between items are reported. `tests/river/test_item_errors.py` has what is sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.aio.protocols import PROTOCOLS, RIVER, serving
from weirpool import ApplicationError, Payload, Service, UnsupportedKind
from weirpool.aio.item_errors import ReportedErrors


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_only_river_reports_errors_between_items(protocol: str) -> None:
    service = Service()

    @service.stream("s.numbers")
    def numbers(request: Payload) -> list[bytes]:
        return [b"1", b"2"]

    async with serving(service, protocol) as peer:
        items = peer.stream("s.numbers").with_errors()
        if protocol in RIVER:
            assert [item async for item in items] == [Payload(b"1"), Payload(b"2")]
        else:
            with pytest.raises(UnsupportedKind, match="leave out results=True, or with_errors"):
                await anext(items)


async def test_next_loop_in_a_block_goes_on_where_the_last_one_ended() -> None:
    service = Service()

    @service.stream("s.results")
    def results(request: Payload) -> Iterator[Payload | ApplicationError]:
        yield Payload(b"1")
        yield ApplicationError("GAP", "missing")
        yield Payload(b"2")

    async with serving(service, "river-json") as peer:
        stream = peer.stream("s.results")
        stream.with_errors()
        async with stream:
            async for item in stream.with_errors():
                assert item == Payload(b"1")
                break
            gap, last = [item async for item in stream.with_errors()]
        assert isinstance(gap, ApplicationError) and gap.code == "GAP" and last == Payload(b"2")


def test_items_of_a_stream_that_is_not_open_are_unchanged() -> None:
    assert ReportedErrors().of(Payload(b"1", b"metadata")) == Payload(b"1", b"metadata")
