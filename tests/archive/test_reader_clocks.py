"""Starts at a time in logs that are sealed, in folders and stores, whose collectors' clocks moved (THREATS 114)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.archive.logs import SMALL
from tests.journal.clocks import NOON, STEPS, Step, times, write_at, wrong_starts
from tests.journal.logs import SOURCE
from tests.objects.stores import numbers
from weirpool.archive import SealOptions, manifest, seal
from weirpool.journal import Journal
from weirpool.journal.since import first_since


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, more=STEPS, files=st.integers(1, 4), back=st.sampled_from([0, 1800, -1800]))
def test_it_is_that_of_a_linear_search(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], more: list[Step], files: int, back: int
) -> None:
    path = tmp_path_factory.mktemp("journal")
    clock = write_at(path, steps)
    before = Journal(path).reader(SOURCE)
    for _ in range(files):
        seal(path, SOURCE, SMALL, force=True)
    write_at(path, more, clock - timedelta(seconds=back))
    before.refresh()
    for reader in (before, Journal(path).reader(SOURCE)):
        assert not list(wrong_starts(reader))


@pytest.mark.parametrize("pages", [False, True], ids=["entries", "pages"])
def test_a_store_has_the_same_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: bool) -> None:
    if pages:
        monkeypatch.setattr(manifest, "MAX_SEGMENTS", 3)
        monkeypatch.setattr(manifest, "PAGE_SEGMENTS", 2)
    uri = f"memory://clocks-{next(numbers)}"
    options = SealOptions(store=uri, target_bytes=1)
    clock = write_at(tmp_path, [(-1800 if number == 20 else 10, 2) for number in range(40)])
    while seal(tmp_path, SOURCE, options, force=True):
        pass
    write_at(tmp_path, [(3600, 2), (-7200, 2), (10, 2)], clock)
    here, there = Journal(tmp_path).reader(SOURCE), Journal(uri).reader(SOURCE)
    assert there.end < here.end == 86
    for reader in (here, there):
        assert not list(wrong_starts(reader))
    # Both forms have rows since then, and those of the first one were received earlier.
    last = times(there)[-1]
    assert first_since(here, last[1]) <= last[0]
    assert first_since(here, NOON + timedelta(minutes=30)) == 80
