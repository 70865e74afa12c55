from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sealing syncs often. No test here cuts the power of this machine."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
