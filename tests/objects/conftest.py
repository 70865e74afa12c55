from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.objects.stores import CREDENTIALS, new_uri, numbers, s3_server
from weirpool.objects import Store, open_store


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An emulator of S3 for the tests of a module."""
    with s3_server() as started:
        yield started


@pytest.fixture(params=["folder", "s3", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store of each kind."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    if request.param == "folder":
        return open_store(tmp_path / "store")
    if request.param == "memory":
        return open_store(f"memory://test-{next(numbers)}")
    return open_store(new_uri(request.getfixturevalue("endpoint")))
