"""The work that another party's description may cause, counted in steps (THREATS 110)."""

from __future__ import annotations

from ..errors import LocalError

__all__ = ["Budget"]


class Budget:
    """Steps for everything that is made from one description.

    Args:
        steps: How many there are.
        subject: What becomes too large without them, for the error.

    Attributes:
        left: How many are left.

    """

    __slots__ = ("_steps", "_subject", "left")

    def __init__(self, steps: int, subject: str) -> None:
        self.left = steps
        self._steps = steps
        self._subject = subject

    def spend(self, steps: int = 1) -> None:
        """Take steps. Raises LocalError if there are not as many left."""
        self.left -= steps
        if self.left < 0:
            raise LocalError(f"{self._subject} takes more than {self._steps:,} steps; use fewer references")

    def afford(self, steps: int = 1) -> bool:
        """Take steps if there are as many left, and return whether there were."""
        if self.left < steps:
            return False
        self.left -= steps
        return True
