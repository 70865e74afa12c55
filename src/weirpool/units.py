"""Sizes and durations as people write them: on the command line, in files, and as options of Spark."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["seconds", "size"]

MAX_SECONDS: Final = 100 * 366 * 86_400.0
SIZES: Final = ("", "k", "m", "g", "t")
PERIODS: Final = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
# The numbers of digits are bounded, because Python takes long to convert very long numbers.
_SIZE: Final = re.compile(r"([0-9]{1,18}) ?([kmgt]?)(?:i?b)?", re.IGNORECASE | re.ASCII)
_PERIOD: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?(ms|s|m|h|d|)", re.IGNORECASE | re.ASCII)


def size(given: object, least: int = 1) -> int:
    """Return a size in bytes; `ValueError` if it is not one.

    Args:
        given: A number, or a text such as "1000000", "64k", "256MiB" or "4 GB". All units are powers of 1,024.
        least: The smallest valid size.

    """
    match = _SIZE.fullmatch(given.strip()) if isinstance(given, str) else None
    count = int(match[1]) << 10 * SIZES.index(match[2].lower()) if match is not None else given
    if type(count) is int and count >= least:
        return count
    raise ValueError(f"it must be a size in bytes{' or 0' if least == 0 else ''}, such as 1000000, 64k, 256MiB or 4GiB")


def seconds(given: object, least: float = 0.0) -> float:
    """Return a duration in seconds; `ValueError` if it is not one.

    Args:
        given: A number of seconds, or a text such as "1.5", "500ms", "90s", "5m", "12h" or "30d".
        least: The shortest valid duration.

    """
    match = _PERIOD.fullmatch(given.strip()) if isinstance(given, str) else None
    value = float(match[1]) * PERIODS[match[2].lower()] if match is not None else given
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= MAX_SECONDS:
        return float(value)
    bound = f" of at least {least:g} s" if least else ""
    raise ValueError(f"it must be a duration{bound}: a number of seconds, or a form such as 500ms, 90s, 5m, 12h or 30d")
