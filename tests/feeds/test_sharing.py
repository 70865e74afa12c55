from __future__ import annotations

from collections import Counter

from weirpool.feeds.sharing import worker_of

NAMES = [f"feed-{number}" for number in range(3_000)]


def test_workers_have_similar_shares() -> None:
    shares = Counter(worker_of(name, 6) for name in NAMES)
    assert sorted(shares) == list(range(6))
    assert max(shares.values()) < 1.2 * min(shares.values())


def test_only_the_feeds_of_the_new_worker_move() -> None:
    moved = [name for name in NAMES if worker_of(name, 4) != worker_of(name, 5)]
    assert {worker_of(name, 5) for name in moved} == {4}
    assert len(moved) < len(NAMES) / 4


def test_one_worker_has_all() -> None:
    assert {worker_of(name, 1) for name in NAMES} == {0}
