"""What tests of the asyncio layer share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def tidy(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test after which asyncio complains: of errors that nobody took, of tasks that were lost."""
    yield
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
