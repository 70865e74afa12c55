"""Prints errors. Needs no package, so that a missing one can be reported."""

from __future__ import annotations

import sys

from ..texts import shown

__all__ = ["complain"]


def complain(message: str) -> None:
    """Print an error to standard error as one line. It may contain text from the peer."""
    print(f"penstock: {shown(message).replace(chr(10), ' ')}", file=sys.stderr)
