"""What a call returns or raises, to compare two builds or two ways to read the same bytes."""

from __future__ import annotations

from typing import Any

__all__ = ["attempt"]


def attempt(call: Any, *arguments: Any) -> Any:
    """Return what a call returns, or the error that it raises, comparably."""
    try:
        return call(*arguments)
    except Exception as error:
        return type(error).__name__, str(error), getattr(error, "ignorable", None)
