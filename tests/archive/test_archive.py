from __future__ import annotations

import pytest

import penstock.archive


def test_all_names_are_there() -> None:
    for name in penstock.archive.__all__:
        assert getattr(penstock.archive, name) is not None


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'unseal'"):
        _ = penstock.archive.unseal  # type: ignore[attr-defined]
