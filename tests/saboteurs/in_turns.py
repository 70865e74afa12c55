"""Mistakes in the turns of clients: whose input is decoded, for how long, and which handlers keep a slot."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from weirpool.aio.slots import Slots
from weirpool.transports.turns import Client, Turns

from .patching import edited, replaced
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def input_without_end() -> Sabotage:
    return edited(Turns, "_turn", ("max(MOST_SECONDS - (now - self.ended), LEAST_SECONDS)", "1.0"))


def links_instead_of_clients() -> Sabotage:
    return replaced((Turns, "client", lambda self, name: Client()))


def canceled_handlers_forgotten() -> Sabotage:
    return replaced((Slots, "full", lambda self: False))


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "input without end",
        "a turn lasts as long as input waits",
        "",
        "shares of time",
        input_without_end,
    ),
    Saboteur(
        "links instead of clients",
        "each link of a client has the share of a client",
        "",
        "shares of time",
        links_instead_of_clients,
    ),
    Saboteur(
        "canceled handlers forgotten",
        "a handler that runs on after its request was canceled has no slot",
        "",
        "shares of time",
        canceled_handlers_forgotten,
    ),
)
