"""Mistakes in the queue of calls: what it learns from refusals, and whose turn it is."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

from weirpool.aio.connectors import Connector
from weirpool.aio.queueing import CallLimit
from weirpool.rsocket import inbound
from weirpool.wire.rsocket import v00_layouts

from .patching import edited, replaced
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def refusals_teach_nothing() -> Sabotage:
    return replaced((CallLimit, "refused", lambda self, still_open: None))


def limit_never_grows() -> Sabotage:
    return replaced((CallLimit, "sent", lambda self: None))


def limit_falls_by_what_was_refused() -> Sabotage:
    return edited(CallLimit, "refused", ("(still_open * 9 + 9) // 10", "still_open"))


def refused_calls_wait_at_the_end() -> Sabotage:
    return edited(Connector, "queued", ("order = order or request.stream_id", "order = 0"))


def refusals_without_codes_unknown() -> Sabotage:
    never = re.compile(b"(?!)")
    return replaced((inbound, "REFUSALS", ()), (v00_layouts, "CODE_IN_METADATA", never))


SABOTEURS = (
    Saboteur(
        "refusals without codes unknown",
        "a client of ReactiveSocket 0.0 takes a refusal for a failure of the handler",
        "RS2",
        "crowds",
        refusals_without_codes_unknown,
    ),
    Saboteur(
        "refusals teach nothing",
        "a refused call is sent again at once, and again",
        "RS2",
        "crowds",
        refusals_teach_nothing,
    ),
    Saboteur(
        "limit of calls never grows",
        "a limit that was lowered stays so, and who came first keeps its share",
        "",
        "shared limits",
        limit_never_grows,
    ),
    Saboteur(
        "limit of calls without multiplicative decrease",
        "the limit falls only to what the peer holds, and who came first keeps its share",
        "",
        "shared limits",
        limit_falls_by_what_was_refused,
    ),
    Saboteur(
        "refused calls at the end of the queue",
        "a refused call waits behind those that arrived after it",
        "",
        "crowds",
        refused_calls_wait_at_the_end,
    ),
)
