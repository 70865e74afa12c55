"""Settings given by their names: with texts, or with values of a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, Final

from .. import units
from ..settings import DEFAULT_SETTINGS

__all__ = ["given_setting"]

NOT_GIVEN: Final = frozenset({"headers", "lease"})
"""Settings that are given in another way."""
WANTED: Final = {bool: "true or false", int: "a whole number", str: "a text", tuple: "a list"}


def given_setting(name: str, given: object, without: Collection[str] = ()) -> tuple[str, Any]:
    """Return the name and value of a field of :class:`weirpool.Settings`.

    Args:
        name: The field; hyphens may be used instead of underscores.
        given: The value, or a text: true or false, a number, a size such as 16MiB, a duration such as 500ms, or a list
            with commas.
        without: Further fields that cannot be given here.

    Raises:
        ValueError: There is no such field, or it has another type; the message says what to do.

    """
    name = name.replace("-", "_")
    known = [field.name for field in fields(DEFAULT_SETTINGS) if field.name not in {*NOT_GIVEN, *without}]
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "docs/reference/settings.md lists all settings"
        raise ValueError(f"{name} is not a setting that can be given here; {hint}")
    try:
        return name, _value(name, type(getattr(DEFAULT_SETTINGS, name)), given)
    except ValueError as error:
        raise ValueError(f"{name} is {given!r}; {error}") from None


def _value(name: str, kind: type, given: object) -> Any:
    if kind is float:
        return units.seconds(given)
    if name.endswith("_bytes"):
        return units.size(given, 0)
    if kind is tuple:
        parts = given.split(",") if isinstance(given, str) else given
        if isinstance(parts, list):
            return tuple(_size_of_route(part) if name == "element_sizes" else part for part in parts if part)
    value = _parsed(given) if isinstance(given, str) and kind is not str else given
    if type(value) is not kind:
        raise ValueError(f"it must be {WANTED[kind]}")
    return value


def _parsed(text: str) -> object:
    """Return a number or boolean in TOML's syntax; None if `text` is not valid TOML."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return None


def _size_of_route(part: object) -> tuple[str, int]:
    """Return a route and the size of its elements, given as ``ticks:8`` or as a list of both."""
    route, size = part if isinstance(part, list) and len(part) == 2 else str(part).rpartition(":")[::2]
    try:
        if isinstance(route, str) and route:
            return route, units.size(size)
    except ValueError:
        pass
    raise ValueError(f"{part!r} must be ROUTE:BYTES")
