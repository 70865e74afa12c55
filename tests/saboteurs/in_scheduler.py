"""Mistakes in the scheduler: who sends next, how much, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from weirpool.aio import scheduler
from weirpool.aio.half import Half
from weirpool.aio.scheduler import Lane, Scheduler

from .patching import edited, replaced, together
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def turns_without_end() -> Sabotage:
    return edited(Scheduler, "turn", ("now + max(TURN_SECONDS - seconds, MARK_SECONDS)", "now + 50 * TURN_SECONDS"))


def output_before_input() -> Sabotage:
    return edited(
        Scheduler, "_schedule_after_input", ("call_soon(self._reschedule, lane)", "call_soon(self.turn, lane)")
    )


def at_once_without_limit() -> Sabotage:
    return edited(Scheduler, "idle", (" and self.spent < TURN_SECONDS", ""))


def always_at_once() -> Sabotage:
    edit = "not self.flow.paused and scheduler.idle()", "not self.flow.paused and not scheduler.running"
    return edited(Lane, "ready", edit)


def same_stream_again() -> Sabotage:
    edit = "self.waiting[half] = self.visits", "self.waiting[half] = self.visits; self.waiting.move_to_end(half, False)"
    return edited(Lane, "queue", edit)


def new_streams_always_first() -> Sabotage:
    return replaced((scheduler, "PATIENCE", 10**9))


def new_streams_last() -> Sabotage:
    real = Lane.queue

    def queue(self: Lane, half: scheduler.Runnable, new: bool = False) -> None:
        real(self, half)

    return replaced((Lane, "queue", queue))


def streams_instead_of_connections() -> Sabotage:
    edit = "self.deficit -= half.step()", "self.deficit -= half.step() // (1 + len(self.waiting))"
    return edited(Lane, "visit", edit)


def debts_forgiven() -> Sabotage:
    return edited(Half, "begin_turn", ("min(self.burst_left, 0) + self.quantum", "self.quantum"))


def slow_sources_unnoticed() -> Sabotage:
    return replaced((Half, "slow", lambda self, seconds: None), (Half, "limit_burst", lambda self: None))


def all_tasks_woken() -> Sabotage:
    return together(
        edited(Scheduler, "woke", ("self.woken >= self.wakes", "False")),
        replaced((Lane, "wait_for", lambda self, half, turn: None)),
    )


def tasks_lose_their_place() -> Sabotage:
    return edited(Lane, "woke", ("    self.queue(half)\n", ""))


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "turns too long",
        "a turn of the scheduler lasts as long as streams can send",
        "RS1",
        "fair turns",
        turns_without_end,
    ),
    Saboteur(
        "output before input",
        "the next turn runs before input that arrived during the last one",
        "",
        "fair turns",
        output_before_input,
    ),
    Saboteur(
        "sending at once without a limit",
        "a batch of requests sends all that fits into a burst each, at once",
        "RS1",
        "fair turns",
        at_once_without_limit,
    ),
    Saboteur(
        "always at once",
        "a stream that becomes ready sends at once although others wait",
        "RS1",
        "fair turns",
        always_at_once,
    ),
    Saboteur(
        "the same stream again",
        "the stream that has just sent is the next one of its connection",
        "",
        "fair turns",
        same_stream_again,
    ),
    Saboteur(
        "new streams always first",
        "a client that opens streams without end starves its own old ones",
        "",
        "fair turns",
        new_streams_always_first,
    ),
    Saboteur(
        "new streams last",
        "a short stream waits for a round of all streams of its connection",
        "",
        "fair turns",
        new_streams_last,
    ),
    Saboteur(
        "streams instead of connections",
        "a connection gets a quantum for each of its streams",
        "RS1",
        "fair turns",
        streams_instead_of_connections,
    ),
    Saboteur(
        "debts forgiven",
        "a stream of large items gets a turn for each item, whatever its size",
        "",
        "fair turns",
        debts_forgiven,
    ),
    Saboteur(
        "slow sources unnoticed",
        "a source that needs long for an item gets as many items in a turn as others",
        "",
        "fair turns",
        slow_sources_unnoticed,
    ),
    Saboteur(
        "all tasks woken",
        "all async sources send in the same iteration of the loop",
        "RS1",
        "fair turns",
        all_tasks_woken,
    ),
    Saboteur(
        "tasks lose their place",
        "plain sources are served again before the tasks that were woken have sent",
        "",
        "fair turns",
        tasks_lose_their_place,
    ),
)
