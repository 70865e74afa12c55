from __future__ import annotations

import asyncio

import pytest

from penstock.aio.loop import run


def test_run_returns_what_main_returns() -> None:
    async def main() -> int:
        await asyncio.sleep(0)
        return 7

    assert run(main()) == 7


def test_run_raises_what_main_raises() -> None:
    async def main() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run(main())
