from __future__ import annotations

import asyncio

import pytest

from tests.missing import need_module
from weirpool import LocalError
from weirpool.aio.loop import new_event_loop, run


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


async def test_run_within_a_running_loop_names_the_alternatives() -> None:
    async def main() -> None:
        pass

    with pytest.raises(
        LocalError, match=r"`peer = await weirpool\.connect\(url\)`, or the blocking API, weirpool\.sync"
    ):
        run(main())


def test_new_event_loop_is_one_of_uvloop_if_it_is_installed() -> None:
    uvloop = need_module("uvloop")
    loop = new_event_loop()
    assert isinstance(loop, uvloop.Loop)
    loop.close()
