"""The kinds of interaction, the same for every protocol."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Kind"]


class Kind(IntEnum):
    """How many items travel each way: from the requester, and back to it."""

    CALL = 1
    """One item there, one back."""
    FIRE = 2
    """One item there, nothing back."""
    STREAM = 3
    """One item there, any number back."""
    UPLOAD = 4
    """Any number there, one back."""
    CHANNEL = 5
    """Any number each way."""

    @property
    def sends_items(self) -> bool:
        """Whether the requester sends items after its first one."""
        return self >= Kind.UPLOAD

    @property
    def answers_items(self) -> bool:
        """Whether any number of items come back."""
        return self in (Kind.STREAM, Kind.CHANNEL)
