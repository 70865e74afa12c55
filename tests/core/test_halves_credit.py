from __future__ import annotations

import pytest


@pytest.mark.parametrize(("credit", "count", "total"), [(0, 1, 1), (5, 7, 12), (2**31 - 2, 1, 2**31 - 1)])
def test_credit_is_added(build, credit: int, count: int, total: int) -> None:
    assert build.module("weirpool.core.halves").add(credit, count) == total


def test_credit_saturates(build) -> None:
    # THREATS 39
    credit = build.module("weirpool.core.halves")
    total = 0
    for _ in range(1000):
        total = credit.add(total, 2**31 - 1)
    assert total == credit.MAX_REQUEST_N == 2**31 - 1
