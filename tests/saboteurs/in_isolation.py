"""Mistakes by which one request, task or link harms another."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from weirpool.aio.dispatch import Dispatch
from weirpool.aio.exchanges import Exchanges
from weirpool.aio.flow import Flow
from weirpool.aio.inbound import ReceiveBuffer
from weirpool.aio.pump import Pump

from .patching import edited, replaced
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]

CATCH = "    except BaseException as error:"
CATCH_ERRORS = "    except (Exception, asyncio.CancelledError) as error:"


def one_context() -> Sabotage:
    return edited(Dispatch, "_begin", ("context = self.context.copy()", "context = self.context"))


def generators_without_context() -> Sabotage:
    return edited(Pump, "step", ("self.context.run(self.burst)", "self.burst()"))


def panic_passes_dispatch() -> Sabotage:
    return edited(Dispatch, "_begin", (CATCH, CATCH_ERRORS))


def panic_passes_a_generator() -> Sabotage:
    return edited(Pump, "step", (CATCH, CATCH_ERRORS))


def panic_unlogged() -> Sabotage:
    edit = "if isinstance(error, asyncio.CancelledError):", "if not isinstance(error, Exception):"
    return edited(Exchanges, "fail", edit)


def second_consumer_replaces_the_first() -> Sabotage:
    return edited(ReceiveBuffer, "arrival", ("self.waiters.append(waiter)", "self.waiters = [waiter]"))


def closed_transport_raises() -> Sabotage:
    def link_failed(self: Flow, error: RuntimeError) -> None:
        raise error

    return replaced((Flow, "link_failed", link_failed))


def closed_transport_unreported() -> Sabotage:
    return edited(Flow, "link_broken", ("        self.loop.call_soon(self._report_lost, receiver, lost)\n", ""))


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "one context for all requests",
        "all handlers of a connection run in one context, so that one sees what another has set",
        "RS3",
        "context variables",
        one_context,
    ),
    Saboteur(
        "generators without their context",
        "the steps of a plain generator run in the context of whatever continues it",
        "RS3",
        "context variables",
        generators_without_context,
    ),
    Saboteur(
        "panic passes dispatch",
        "a BaseException of a plain handler ends the link",
        "RS5",
        "panics",
        panic_passes_dispatch,
    ),
    Saboteur(
        "panic passes a generator",
        "a BaseException of a plain generator ends the link",
        "RS5",
        "panics",
        panic_passes_a_generator,
    ),
    Saboteur(
        "panic not in the log",
        "a BaseException of a handler is reported to the peer as a cancellation, and not logged",
        "RS5",
        "panics",
        panic_unlogged,
    ),
    Saboteur(
        "second consumer replaces the first",
        "of two tasks that wait for items of one stream, only the second one is woken",
        "RS4",
        "shared streams",
        second_consumer_replaces_the_first,
    ),
    Saboteur(
        "closed transport raises",
        "the RuntimeError of a closed transport reaches the caller of a verb, or the event loop",
        "SF8",
        "closed transports",
        closed_transport_raises,
    ),
    Saboteur(
        "closed transport not reported",
        "a link whose transport is closed is dropped, but its session does not learn of it",
        "SF8",
        "closed transports",
        closed_transport_unreported,
    ),
)
