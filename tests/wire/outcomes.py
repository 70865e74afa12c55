"""The results and errors of calls, to compare two builds or two decoders."""

from __future__ import annotations

from typing import Any

__all__ = ["attempt"]


def attempt(call: Any, *arguments: Any) -> Any:
    """Return the result or error of a call in comparable form."""
    try:
        return call(*arguments)
    except Exception as error:
        return type(error).__name__, str(error), getattr(error, "ignorable", None)
