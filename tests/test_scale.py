from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tools import scale
from tools.scale import Deployment

from tests.archive.logs import SMALL, fill
from tests.archive.steps import Steps
from tests.journal.logs import SOURCE
from weirpool.archive import SealOptions, seal
from weirpool.journal.format import ITEMS
from weirpool.journal.writer import JournalWriter


def test_the_page_of_scale_is_up_to_date() -> None:
    assert scale.PAGE.read_text(encoding="utf-8") == scale.page(), "run: python -m tools.scale"


def test_files_are_full_or_old() -> None:
    assert Deployment("slow", 1, 10, 1.0).files == pytest.approx(10 * scale.DAY / scale.SEAL_AGE)
    fast = Deployment("fast", 1, 10, 1e6)
    assert fast.files == pytest.approx(fast.bytes * scale.DAY / scale.SEAL_BYTES)


def test_more_of_everything_costs_more() -> None:
    one, ten = Deployment("one", 1, 100, 1_000), Deployment("ten", 10, 1_000, 1_000)
    assert ten.dollars == pytest.approx(10 * one.dollars)
    assert Deployment("larger", 1, 100, 1_000, size=1_280).dollars > one.dollars


def test_a_take_over_takes_longer_the_more_is_not_sealed() -> None:
    slow, fast = Deployment("slow", 1, 10, 100.0), Deployment("fast", 1, 1_000, 9_000.0)
    assert slow.bundles == 1 / scale.BUNDLE_SECONDS and fast.bundles > slow.bundles
    assert slow.unsealed == 2 * scale.SEAL_AGE > fast.unsealed
    assert fast.take_over > slow.take_over > scale.PATIENCE


def event(rng: Random, number: int) -> bytes:
    ids = {"id": rng.randbytes(8).hex(), "session": rng.randbytes(8).hex(), "user": rng.randrange(10**6)}
    return json.dumps(ids | {"at": 1_770_000_000_000 + number, "event": rng.choice(["view", "click", "buy"])}).encode()


def quote(rng: Random, number: int) -> bytes:
    at = datetime(2026, 1, 31) + timedelta(microseconds=1_000 * number + rng.randrange(1_000))
    prices = {name: round(100 + rng.gauss(0, 5), 2) for name in ("price", "bid")}
    words = {"symbol": rng.choice(["ACME", "BETA", "GAMA"]), "at": f"{at.isoformat()}Z", "size": rng.randrange(10_000)}
    return json.dumps(words | prices | {"venue": rng.choice(["XETRA", "NYSE", "LSE"])}).encode()


def noise(rng: Random, number: int) -> bytes:
    return rng.randbytes(128)


@pytest.mark.parametrize(
    ("item", "expected"),
    [(event, scale.STORED), (quote, scale.STORED_QUOTES), (noise, scale.STORED_RANDOM)],
    ids=["event", "quote", "noise"],
)
def test_sealed_items_take_so_many_bytes(tmp_path: Path, item: Callable[[Random, int], bytes], expected: float) -> None:
    rng = Random(1)
    items = [item(rng, number) for number in range(50_000)]
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1 << 20, fsync=False) as writer:
        for start in range(0, len(items), 1_000):
            data = pa.array(items[start : start + 1_000], pa.binary())
            writer.append(pa.record_batch([data, pa.nulls(len(data), pa.binary())], schema=ITEMS), "events")
    sealed = seal(tmp_path, SOURCE, SealOptions(target_bytes=1 << 30), force=True)
    assert sealed is not None
    assert sealed.size / sum(map(len, items[: sealed.end])) == pytest.approx(expected, rel=0.1)


class Requests(Steps):
    """Counts the calls of a store by name."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def run(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self.counts[call.__name__] += 1
        return super().run(call, *arguments, **options)


def test_a_file_is_sealed_with_so_many_requests(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4, 5)
    seal(tmp_path, SOURCE, SMALL)
    requests = Requests()
    with requests.installed(disk=False):
        assert seal(tmp_path, SOURCE, SMALL) is not None
    counts = requests.counts
    assert counts["list"] + counts["create"] + counts["put"] == scale.SEAL_PUTS, counts
    assert counts["get"] == scale.SEAL_GETS, counts
