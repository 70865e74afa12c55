"""A trace of one call, cut into its four trips between a caller, two sockets and a handler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["TRIPS", "Step", "Walk", "measure"]

TRIPS = ("call -> socket", "socket -> handler", "handler -> socket", "socket -> caller")
UNCOUNTED = frozenset({"<dictcomp>", "<genexpr>", "<listcomp>", "<setcomp>"})
"""No functions of their own, and how often they are entered depends on the version of Python."""


@dataclass(frozen=True, slots=True)
class Step:
    """A function was entered, or left for its caller.

    Attributes:
        file: Where the interpreter goes on: the file of the function that was entered, or of the caller. None where
            that is neither ours nor the user's.
        entered: The name of the function that was entered; None where one was left.
        mark: What the function is to the call: "arrival" at a socket, "handler", "departure"; else empty.
        user: The file is the caller's or the handler's.

    """

    file: str | None
    entered: str | None = None
    mark: str = ""
    user: bool = False

    @property
    def counts(self) -> bool:
        """Whether it enters a function, and no part of one."""
        return self.entered is not None and self.entered not in UNCOUNTED


@dataclass(frozen=True)
class Walk:
    """What one call costs.

    Attributes:
        files: The files that each of the four trips enters, by the trip's name. The files of the handler and of the
            caller count where a trip ends or begins; the transport's counts where bytes arrive.
        changes: How often the whole call goes on in another file of ours.
        calls: How many functions of ours the whole call enters.

    """

    files: dict[str, list[str]]
    changes: int
    calls: int


def measure(steps: Sequence[Step]) -> Walk:
    """Cut a trace into trips and count.

    Raises:
        ValueError: The trace is not that of one call: it does not leave, arrive, reach the handler, leave and arrive.

    """
    cuts = _cuts(steps)
    out, asked, handler, answered, back = cuts
    pieces = (steps[:out], steps[asked : handler + 1], steps[handler:answered], steps[back:])
    files = {name: _files(piece) for name, piece in zip(TRIPS, pieces, strict=True)}
    ours = [step for step in steps if step.file is not None and not step.user]
    changes = sum(a.file != b.file for a, b in pairwise(ours))
    return Walk(files, changes, sum(step.counts for step in ours))


def _cuts(steps: Sequence[Step]) -> list[int]:
    """Return where the call leaves, arrives, reaches its handler, and where the answer leaves and arrives."""
    wanted = ["departure", "arrival", "handler", "departure", "arrival"]
    cuts: list[int] = []
    for number, step in enumerate(steps):
        if len(cuts) < len(wanted) and step.mark == wanted[len(cuts)]:
            cuts.append(number)
    if len(cuts) < len(wanted):
        raise ValueError(f"this is not the trace of a call: it has no {wanted[len(cuts)]} after {wanted[: len(cuts)]}")
    return cuts


def _files(steps: Iterable[Step]) -> list[str]:
    return sorted({step.file for step in steps if step.counts and step.file is not None})
