"""Checks of positions and counts that somebody outside has set."""

from __future__ import annotations

import operator

from ..errors import LocalError

__all__ = ["check_count", "check_span", "shown_number"]


def check_count(value: object, what: str) -> int:
    """Return a position, or a number of rows or bytes, as an `int`.

    Raises:
        LocalError: It is not a whole number from 0 on; the error names `what` it is.

    """
    number = _whole(value)
    if number is None or number < 0:
        raise LocalError(f"{what} is {shown_number(value)}; it must be a whole number, and positions start at 0")
    return number


def check_span(where: str, start: object, end: object) -> None:
    """Check that a range is one, of positions of the log that is shown as `where`; `LocalError` if it is not."""
    first, stop = _whole(start), _whole(end)
    if first is None or stop is None or not 0 <= first <= stop:
        raise LocalError(
            f"{where}: there is no range from {shown_number(start)} to {shown_number(end)}; positions start at 0"
        )


def shown_number(value: object) -> str:
    """Return a number for an error. Python refuses to write one of more than 4,300 digits."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    return repr(value)[:100]


def _whole(value: object) -> int | None:
    """Return a whole number as an `int`; None for anything else, such as a truth value."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
