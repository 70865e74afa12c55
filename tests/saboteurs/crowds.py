"""The laboratory of queued calls: crowds of calls on virtual time, against servers that admit few of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.sim.crowd import PROTOCOLS, Crowd, Shared

__all__ = ["crowds", "shared_limits"]

WORLDS = ((1, 0.01, 0.001, 0.0), (8, 0.05, 0.01, 0.2), (100, 0.01, 0.05, 0.1), (40, 0.2, 0.001, 0.3))
"""What the server admits, how long a call and the link take, and how many are canceled."""


def crowds(folder: Path) -> Iterator[str]:
    """Make more calls at once than the server admits; each is answered, once, in order, and soon (RS2, RV8)."""
    for protocol in PROTOCOLS:
        for limit, seconds, delay, cancels in WORLDS:
            crowd = Crowd(protocol, limit, seconds, delay, cancels=cancels, seed=limit)
            yield from (f"{protocol}, a limit of {limit}: {wrong}" for wrong in crowd.breaches())


def shared_limits(folder: Path) -> Iterator[str]:
    """Let clients share a limit that they learn from refusals; their shares become equal, and all of it is used."""
    for clients, capacity in ((2, 40), (3, 24)):
        yield from (f"{clients} clients: {wrong}" for wrong in Shared(clients, capacity, duration=60.0).breaches())
