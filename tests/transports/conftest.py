"""Fixtures for the tests of several transports."""

from __future__ import annotations

import pytest

from tests.transports.certificates import Certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))
