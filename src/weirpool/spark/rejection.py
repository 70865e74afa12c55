"""Rows that a receiver has rejected."""

from __future__ import annotations

from typing import Final

import msgspec

from ..errors import ApplicationError, Undelivered

__all__ = ["Letters", "Rejection", "code_of", "shown"]

MAX_BYTES: Final = 16 * 1024 * 1024
"""Rejected rows of a task: they travel to the driver with the task's result."""


class Rejection(msgspec.Struct, frozen=True):
    """A row that a receiver has rejected, and why."""

    partition: int
    """The task."""
    index: int
    """The row's index in the task."""
    code: str
    """The receiver's code."""
    message: str
    """The receiver's reason."""
    data: bytes
    """The row, as it was sent."""
    metadata: bytes | None
    """Its metadata, as it was sent."""


class Letters:
    """The rejected rows of a task.

    Args:
        limit: The maximum number of them.

    Attributes:
        rejections: The rows.
    """

    def __init__(self, limit: int) -> None:
        self.rejections: list[Rejection] = []
        self._limit = limit
        self._bytes = 0

    def add(self, rejection: Rejection) -> None:
        """Keep a rejected row.

        Raises:
            Undelivered: There are too many: the cause is hardly in the rows.

        """
        self._bytes += len(rejection.data) + len(rejection.metadata or b"") + len(rejection.message)
        self.rejections.append(rejection)
        if len(self.rejections) > self._limit or self._bytes > MAX_BYTES:
            raise Undelivered(
                f"the receiver has rejected {len(self.rejections)} rows of partition {rejection.partition}, more than "
                f'"maxDeadLetters" allows; the last one was {shown(rejection)}'
            )


def shown(rejection: Rejection) -> str:
    """Return a rejection for an error message, without the row."""
    return f"row {rejection.index}: [{rejection.code}] {rejection.message}"


def code_of(error: ApplicationError) -> str:
    """Return the code of a handler's error as text."""
    return f"0x{error.code:03X}" if isinstance(error.code, int) else error.code
