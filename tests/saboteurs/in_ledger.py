"""Mistakes in the ledger: what is not counted, and who pays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from weirpool.account import FINE, Account, Group
from weirpool.aio import dispatch
from weirpool.aio.inbound import ReceiveBuffer
from weirpool.core.fragments import Reassembly
from weirpool.core.replay import Replay
from weirpool.core.unfinished import Unfinished
from weirpool.errors import LimitExceeded

from .patching import edited, replaced
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def nothing_is_booked() -> Sabotage:
    return replaced((Account, "book", lambda self, size: None), (Account, "release", lambda self, size: None))


def nothing_is_released() -> Sabotage:
    return replaced((ReceiveBuffer, "_release_ready", lambda self: None))


def nothing_is_settled() -> Sabotage:
    return replaced((Account, "settle", lambda self: FINE))


def nobody_pays() -> Sabotage:
    return replaced((Group, "charge", lambda self: None))


def requests_are_not_counted() -> Sabotage:
    return replaced((dispatch, "_memory_of", lambda request, handler: 0))


def replay_is_not_counted() -> Sabotage:
    return replaced((Replay, "_count", lambda self: None))


def frames_are_not_counted() -> Sabotage:
    return replaced((Unfinished, "update", lambda self, held, now, ready=False: None))


def who_adds_pays() -> Sabotage:
    real = Reassembly.excess

    def excess(self: Any) -> Any:
        group = self._account.group
        process = None if group is None else group.parent
        others = 0 if process is None else sum(each.incomplete for each in process.accounts())
        if others > self._settings.max_process_reassembly_bytes and self.partials:
            return next(iter(self.partials)), LimitExceeded("all connections hold too much")
        return real(self)

    return replaced((Reassembly, "excess", excess))


def smallest_pays() -> Sabotage:
    return edited(
        Group, "charge", ("largest = max(largest.members, key=size)", "largest = min(largest.members, key=size)")
    )


SABOTEURS: Sequence[Saboteur] = (
    Saboteur("items are not booked", "queued items count for nothing", "SF2", "floods", nothing_is_booked),
    Saboteur("items are not released", "consumed items are counted for ever", "", "floods", nothing_is_released),
    Saboteur("accounts do not settle", "no limit is ever found exceeded", "SF2", "floods", nothing_is_settled),
    Saboteur("nobody pays", "connections wait for each other", "", "greed", nobody_pays),
    Saboteur("requests are not counted", "they may be any number", "SF2", "floods", requests_are_not_counted),
    Saboteur("replay is not counted", "sessions keep what they like", "SF5", "floods", replay_is_not_counted),
    Saboteur("half frames are not counted", "and have no deadline", "SF4", "floods", frames_are_not_counted),
    Saboteur("who adds a fragment pays", "the innocent lose their items", "SF3", "greed", who_adds_pays),
    Saboteur("the smallest pays", "the innocent lose their items", "SF3", "greed", smallest_pays),
)
