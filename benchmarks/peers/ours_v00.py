"""Weirpool by ReactiveSocket 0.0: the calls of `ours`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weirpool import serve

from .ours import connected, service

__all__ = ["connected", "serving"]


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    async with serve(service, "reactivesocket-0.0+tcp://127.0.0.1:0") as server:
        yield server.urls[0]
