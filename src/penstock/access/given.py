"""Settings given as names and texts."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, Final

from ..settings import DEFAULT_SETTINGS

__all__ = ["given_setting"]


def given_setting(name: str, text: str) -> tuple[str, Any]:
    """Return the name and value of a field of :class:`penstock.Settings`.

    Args:
        name: The field; hyphens may be used instead of underscores.
        text: A value of a simple type in TOML's syntax, without quotes; a list has commas.

    Raises:
        ValueError: There is no such field, or it has another type; the message says what to do.

    """
    name = name.replace("-", "_")
    defaults = {field.name: getattr(DEFAULT_SETTINGS, field.name) for field in fields(DEFAULT_SETTINGS)}
    simple = [known for known, value in defaults.items() if isinstance(value, int | float | str) and known != "lease"]
    if name in _LISTS:
        return name, _LISTS[name]([part for part in text.split(",") if part])
    if name not in simple:
        near = get_close_matches(name, [*simple, *_LISTS], n=1)
        hint = f"did you mean {near[0]!r}?" if near else "docs/reference/settings.md lists all settings"
        raise ValueError(f"{name} is not a setting that can be given as text; {hint}")
    default = defaults[name]
    if isinstance(default, str):
        return name, text
    value = _number(text)
    if isinstance(default, bool) != isinstance(value, bool) or not isinstance(value, int | type(default)):
        wanted = {bool: "true or false", int: "an integer", float: "a number"}[type(default)]
        raise ValueError(f"{name} must be {wanted}")
    return name, value


def _number(text: str) -> object:
    """Return a number or boolean in TOML's syntax; None if `text` is not valid TOML."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return None


def _sizes(parts: list[str]) -> tuple[tuple[str, int], ...]:
    """Return routes and sizes: ``ticks:8,quotes:16``."""
    found: list[tuple[str, int]] = []
    for part in parts:
        route, colon, size = part.rpartition(":")
        number = _number(size)
        if not colon or type(number) is not int:
            raise ValueError(f"{part!r} must be ROUTE:BYTES")
        found.append((route, number))
    return tuple(found)


_LISTS: Final[dict[str, Callable[[list[str]], Any]]] = {
    "extensions": tuple,
    "element_sizes": _sizes,
    "trusted_proxies": tuple,
}
"""Settings whose value is a comma-separated list."""
