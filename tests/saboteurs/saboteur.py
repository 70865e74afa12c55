"""What a saboteur is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

__all__ = ["Saboteur"]


@dataclass(frozen=True)
class Saboteur:
    """A known mistake.

    Attributes:
        name: For people and tests.
        mistake: What is wrong while it is in the code, in a sentence.
        origin: The finding or the threat that it comes from; empty for one that anybody could make.
        laboratory: The one that must find it; see `tests.saboteurs.laboratories`.
        sabotage: Puts the mistake into the plain build for the time of a block.

    """

    name: str
    mistake: str
    origin: str
    laboratory: str
    sabotage: Callable[[], AbstractContextManager[object]]
