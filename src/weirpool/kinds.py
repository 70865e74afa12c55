"""The kinds of interaction, which are the same in every protocol."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Literal, TypeAlias, get_args

__all__ = ["ANY", "KIND_NAMES", "Kind", "KindName"]

KindName: TypeAlias = Literal["call", "fire", "stream", "upload", "channel"]
"""A kind in documents and commands, which is also the name of the method and of the verb that make such a request."""
KIND_NAMES: Final[tuple[KindName, ...]] = get_args(KindName)
"""In the order of their numbers, from 1."""


class Kind(IntEnum):
    """How many items each side sends."""

    CALL = 1
    """One item from the requester, one from the responder."""
    FIRE = 2
    """One item from the requester, none from the responder."""
    STREAM = 3
    """One item from the requester, any number from the responder."""
    UPLOAD = 4
    """Any number of items from the requester, one from the responder."""
    CHANNEL = 5
    """Any number of items from each side."""

    @property
    def sends_items(self) -> bool:
        """True if the requester sends more items after the first one."""
        return self >= Kind.UPLOAD

    @property
    def answers_items(self) -> bool:
        """True if the responder sends any number of items."""
        return self in (Kind.STREAM, Kind.CHANNEL)


ANY: Final = 0
"""Stands for the kind of a route that accepts requests of every kind, so that each request decides."""
