from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from penstock.cli.pace import paced
from tests.cli.conftest import Penstock


async def letters() -> AsyncIterator[str]:
    for letter in "abc":
        yield letter


async def test_time_passes_between_items_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert [letter async for letter in paced(letters(), 0.25)] == ["a", "b", "c"]
    assert waited == [0.25, 0.25]
    assert [number async for number in paced(range(3), 0)] == [0, 1, 2]
    assert waited == [0.25, 0.25]


def test_verbs_take_their_time(penstock: Penstock, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        waited.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    assert penstock("call", server, "echo", "-d", "x", "--repeat", "3", "--interval", "7").lines == [b"x"] * 3
    assert penstock("stream", server, "count", "-d", "3", "--interval", "6").lines == [b"0", b"1", b"2"]
    assert penstock("upload", server, "sum", "1\n2\n3", "--delay", "5").lines == [b"6"]
    assert [seconds for seconds in waited if seconds] == [7, 7, 6, 6, 5, 5]
