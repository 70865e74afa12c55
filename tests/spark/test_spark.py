from __future__ import annotations

import pytest

import penstock.spark


@pytest.mark.parametrize("name", penstock.spark.__all__)
def test_public_functions_are_found(name: str) -> None:
    assert callable(getattr(penstock.spark, name))


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        penstock.spark.nothing  # noqa: B018
