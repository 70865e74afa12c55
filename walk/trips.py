"""Divides the trace of a call into four trips between a caller, two sockets and a handler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["TRIPS", "Step", "Walk", "measure"]

TRIPS = ("call -> socket", "socket -> handler", "handler -> socket", "socket -> caller")
UNCOUNTED = frozenset({"<dictcomp>", "<genexpr>", "<listcomp>", "<setcomp>"})
"""Code objects that are not functions; how often they are entered depends on the version of Python."""


@dataclass(frozen=True, slots=True)
class Step:
    """The call of a function, or the return to its caller.

    Attributes:
        file: The file in which the interpreter continues, of the function or the caller. None if it belongs neither to
            Weirpool nor to the user.
        entered: The name of the called function; None for a return.
        mark: The function's role in the call: "arrival" at a socket, "handler", "departure", or empty.
        user: The file is that of the caller or the handler.

    """

    file: str | None
    entered: str | None = None
    mark: str = ""
    user: bool = False

    @property
    def counts(self) -> bool:
        """Whether the step calls a function, rather than a part of one."""
        return self.entered is not None and self.entered not in UNCOUNTED


@dataclass(frozen=True)
class Walk:
    """The counts of one call.

    Attributes:
        files: The files that each of the four trips enters, by the trip's name. The files of the handler and the caller
            count if a trip starts or ends there; that of the transport counts if bytes arrive.
        changes: The number of changes between our files in the whole call.
        calls: The number of our functions that the whole call enters.

    """

    files: dict[str, list[str]]
    changes: int
    calls: int


def measure(steps: Sequence[Step]) -> Walk:
    """Divide a trace into trips, and count.

    Raises:
        ValueError: The trace is not that of one call, with departure, arrival, handler, departure and arrival.

    """
    cuts = _cuts(steps)
    out, asked, handler, answered, back = cuts
    pieces = (steps[:out], steps[asked : handler + 1], steps[handler:answered], steps[back:])
    files = {name: _files(piece) for name, piece in zip(TRIPS, pieces, strict=True)}
    ours = [step for step in steps if step.file is not None and not step.user]
    changes = sum(a.file != b.file for a, b in pairwise(ours))
    return Walk(files, changes, sum(step.counts for step in ours))


def _cuts(steps: Sequence[Step]) -> list[int]:
    """Return the steps of departure, arrival, handler, and departure and arrival of the response."""
    wanted = ["departure", "arrival", "handler", "departure", "arrival"]
    cuts: list[int] = []
    for number, step in enumerate(steps):
        if len(cuts) < len(wanted) and step.mark == wanted[len(cuts)]:
            cuts.append(number)
    if len(cuts) < len(wanted):
        raise ValueError(f"not the trace of a call: no {wanted[len(cuts)]} after {wanted[: len(cuts)]}")
    return cuts


def _files(steps: Iterable[Step]) -> list[str]:
    return sorted({step.file for step in steps if step.counts and step.file is not None})
