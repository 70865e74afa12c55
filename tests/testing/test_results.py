from __future__ import annotations

import pytest

from weirpool import LocalError
from weirpool.testing.results import Broken, Skipped, require, results_of


async def test_each_check_has_its_outcome() -> None:
    async def kept() -> None:
        require(True, "never")

    async def broken() -> None:
        require(False, "two came")

    async def skipped() -> None:
        raise Skipped("nothing to see")

    results = await results_of({"1.1": kept, "1.2": broken, "1.3": skipped}, None)
    assert [(each.rule.number, each.outcome, each.why) for each in results] == [
        ("1.1", "kept", ""),
        ("1.2", "broken", "two came"),
        ("1.3", "skipped", "nothing to see"),
    ]
    assert str(results[0]).startswith("rule 1.1 kept: A publisher")
    assert str(results[1]) == "rule 1.2 broken: two came"


async def test_other_errors_propagate() -> None:
    async def bug() -> None:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await results_of({"1.1": bug}, None)


async def test_only_wanted_checks_run() -> None:
    async def never() -> None:
        raise AssertionError

    async def kept() -> None: ...

    assert [each.outcome for each in await results_of({"1.1": never, "1.2": kept}, ["1.2"])] == ["kept"]
    with pytest.raises(LocalError, match=r"1\.3"):
        await results_of({"1.1": never}, ["1.3"])


def test_require_raises_broken() -> None:
    with pytest.raises(Broken, match="why"):
        require(False, "why")
