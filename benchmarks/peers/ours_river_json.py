"""Weirpool by River in JSON: the calls of `ours_river`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weirpool import serve

from .ours_river import connected, service

__all__ = ["connected", "serving"]


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    async with serve(service, "river+ws://127.0.0.1:0/?codec=json") as server:
        yield server.urls[0]
