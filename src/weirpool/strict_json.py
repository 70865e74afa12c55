"""JSON that people write: what a parser usually passes over in silence is an error."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Never

__all__ = ["RepeatedName", "strict_json"]


class RepeatedName(ValueError):
    """An object has a name twice. RFC 8259, section 4, leaves open which value counts."""


def strict_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        RepeatedName: An object has a name twice.
        ValueError: The text is not JSON, or is nested too deeply.

    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise RepeatedName(
            f"{next(name for name in names if names.count(name) > 1)!r} is there twice; keep one of them"
        )
    return found


def _finite(number: str) -> float:
    value = float(number)
    if not isfinite(value):
        raise ValueError(f"{number} is greater than any number that Python has")
    return value


def _refused(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")
