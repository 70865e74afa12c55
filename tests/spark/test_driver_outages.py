"""Queries on a journal whose collector is away for a moment, at each request of their lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.saboteurs.absence import LIVES, absent_in


@pytest.mark.slow
@pytest.mark.parametrize("life", LIVES)
def test_a_collector_that_is_away_at_any_request_is_waited_for(tmp_path: Path, life: str) -> None:
    assert [*absent_in(life, tmp_path)] == []
