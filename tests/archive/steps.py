"""Stops before and after every step of sealing: each call of a store, and each change of a name on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

from weirpool.archive import sealing
from weirpool.objects import Store

__all__ = ["Crash", "Steps", "StoppingStore"]

CALLS = ("create", "put", "get", "list", "delete")
CHANGES = ("unlink", "rename", "replace", "link")


class Crash(BaseException):
    """The process was killed."""


class Steps:
    """Counts steps, and does something at one of them.

    Args:
        at: The number of the step; 0: none.
        action: What is done there: it may raise.
        after: Do it after the step had its effect, not before.

    """

    def __init__(self, at: int = 0, action: Callable[[], None] | None = None, *, after: bool = False) -> None:
        self.count = 0
        self._at = at
        self._action = action
        self._after = after
        self._busy = False

    def run(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call something as the next step."""
        if self._busy:
            return call(*arguments, **options)
        self.count += 1
        now = self.count == self._at
        if now and not self._after:
            self._act()
        result = call(*arguments, **options)
        if now and self._after:
            self._act()
        return result

    def _act(self) -> None:
        assert self._action is not None
        self._busy = True
        try:
            self._action()
        finally:
            self._busy = False

    def store(self, real: Callable[..., Store]) -> Callable[..., Any]:
        """Return what opens a store whose calls are steps, given what opens the store."""
        return lambda *arguments: StoppingStore(real(*arguments), self)

    @contextmanager
    def installed(self, *, disk: bool = True) -> Iterator[None]:
        """Let each call of a store, and with `disk` each change of a name on disk, be a step."""

        def wrapped(name: str) -> Callable[..., Any]:
            call = getattr(os, name)
            return lambda *arguments, **options: self.run(call, *arguments, **options)

        with (
            mock.patch.object(sealing, "journal_store", self.store(sealing.journal_store)),
            mock.patch.multiple(os, **{name: wrapped(name) for name in CHANGES}) if disk else nullcontext(),
        ):
            yield


class StoppingStore:
    """A store whose calls are steps."""

    conditional = True

    def __init__(self, store: Store, steps: Steps) -> None:
        self.uri = store.uri
        self.folders = store.folders
        for name in CALLS:
            setattr(self, name, self._call(getattr(store, name), steps))

    @staticmethod
    def _call(call: Callable[..., Any], steps: Steps) -> Callable[..., Any]:
        return lambda *arguments, **options: steps.run(call, *arguments, **options)
