"""Weirpool, as in `ours_fair`, with streams of async generators."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from . import ours_fair
from .ours_fair import serving

__all__ = ["connected", "serving"]


class Client(ours_fair.Client):
    route = "async"


def connected(address: str, tuned: bool) -> AbstractAsyncContextManager[ours_fair.Client]:
    return ours_fair.connected(address, tuned, Client)
