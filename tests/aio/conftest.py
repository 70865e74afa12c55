"""Fixtures of the tests of the asyncio layer."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def tidy(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test if asyncio reports errors that were never retrieved, or tasks that were lost."""
    yield
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
