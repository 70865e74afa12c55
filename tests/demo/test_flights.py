"""The demo as a whole, with real Spark."""

from __future__ import annotations

import pytest

from penstock.cli.main import run
from penstock.demo.flights import FLIGHTS_COUNT, delays, flights, keep_delay
from penstock.payload import Payload


def test_every_flight_is_published() -> None:
    assert sum(batch.num_rows for batch in flights(Payload())) == FLIGHTS_COUNT


def test_the_newest_delay_counts() -> None:
    delays.clear()
    for delay in (1, 2):
        keep_delay(b'{"origin": "JFK", "hour": 5, "delay": %d}' % delay)
    assert [*delays] == ["JFK 05"]
    assert b'"delay": 2' in delays["JFK 05"]
    delays.clear()


@pytest.mark.slow
@pytest.mark.spark
def test_the_demo_runs_and_leaves_what_it_says(tmp_path, capfd) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["demo", "--dir", str(tmp_path)])
    said = capfd.readouterr().out
    assert ended.value.code == 0, said
    assert f"{FLIGHTS_COUNT:,} flights, each exactly once" in said
    assert (tmp_path / "delays.png").stat().st_size > 10_000
