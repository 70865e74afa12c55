from __future__ import annotations

from weirpool.demo.flights import FLIGHTS_COUNT, delays, flights, keep_delay
from weirpool.payload import Payload


def test_every_flight_is_published() -> None:
    assert sum(batch.num_rows for batch in flights(Payload())) == FLIGHTS_COUNT


def test_the_newest_delay_counts() -> None:
    delays.clear()
    for delay in (1, 2):
        keep_delay(b'{"origin": "JFK", "hour": 5, "delay": %d}' % delay)
    assert [*delays] == ["JFK 05"]
    assert b'"delay": 2' in delays["JFK 05"]
    delays.clear()
