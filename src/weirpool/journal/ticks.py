"""Actions of many feeds at the same moments, with one timer for each moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Ticks"]


class Ticks:
    """What is due at each tick. One timer per feed and tick would cost as much as reading its items."""

    def __init__(self) -> None:
        self._due: dict[float, dict[object, Callable[[], None]]] = {}

    def add(self, when: float, owner: object, action: Callable[[], None]) -> None:
        """Call `action` at a time of the event loop, unless `owner` removes it before."""
        due = self._due.get(when)
        if due is None:
            due = self._due[when] = {}
            asyncio.get_running_loop().call_at(when, self._ring, when)
        due[owner] = action

    def remove(self, when: float, owner: object) -> None:
        """Forget the action of `owner` at this time, if there is one."""
        self._due.get(when, {}).pop(owner, None)

    def _ring(self, when: float) -> None:
        for action in self._due.pop(when).values():
            action()
