"""The checks of our River client: ``python -m interop.ours_river TRANSPORT HOST PORT CUT_PORT``.

It prints one JSON object, and exits with 0 if all checks are ok. ``interop/README.md`` describes the checks.
"""

from __future__ import annotations

import asyncio
import sys

from examples.interop import Boom, Number

import weirpool
from weirpool import ApplicationError

from .harness import Place, check, expect, run_all


def url_of(place: Place) -> str:
    return f"river+ws://{place.host}:{place.port}/?codec={place.transport.partition('-')[2]}"


@check("errors-between")
async def errors_between(place: Place) -> None:
    async with weirpool.connect(url_of(place)) as peer:
        asked = weirpool.typed(peer).stream("interop.gaps", Number(777), returns=Number, errors=[Boom], results=True)
        found = [item async for item in asked]
    expect([item for item in found if isinstance(item, Number)], [Number(0), Number(1), Number(777)], "items")
    expect([type(item) for item in found], [Number, Number, Boom, Number], "order")
    for boom in found:
        if isinstance(boom, Boom):
            expect((boom.code, boom.message, boom.extras), ("BOOM", "boom", Number(777)), "error")


@check("errors-between-payloads")
async def errors_between_payloads(place: Place) -> None:
    async with weirpool.connect(url_of(place)) as peer:
        asked = peer.stream(
            "interop.gaps", b'{"n": 777}' if place.transport == "river-json" else b"\x81\xa1n\xcd\x03\x09"
        )
        found = [isinstance(item, ApplicationError) async for item in asked.with_errors()]
    expect(found, [False, False, True, False], "errors")


@check("first-error")
async def first_error(place: Place) -> None:
    async with weirpool.connect(url_of(place)) as peer:
        count = 0
        try:
            async for item in weirpool.typed(peer).stream("interop.gaps", Number(777), returns=Number, errors=[Boom]):
                expect(item, Number(count), "item")
                count += 1
        except Boom:
            expect(count, 2, "number of items before the error")
        else:
            raise AssertionError(f"{count} items, and no error")


if __name__ == "__main__":
    sys.exit(asyncio.run(run_all("weirpool")))
