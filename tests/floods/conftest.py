"""Fixtures of floods."""

from __future__ import annotations

import pytest

from tests.builds import available


@pytest.fixture(params=available())
def build(request: pytest.FixtureRequest) -> str:
    """The name of the build of the flooded process. The test itself always uses the one that it has imported."""
    name: str = request.param
    return name
