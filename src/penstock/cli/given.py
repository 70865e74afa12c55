"""Settings given on the command line as NAME=VALUE."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, Final

from ..errors import LocalError
from ..settings import DEFAULT_SETTINGS

__all__ = ["given_settings"]


def given_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Return the fields of :class:`penstock.Settings` that NAME=VALUE pairs set."""
    return dict(_setting(pair) for pair in pairs)


def _setting(pair: str) -> tuple[str, Any]:
    name, equals, text = pair.partition("=")
    name = name.replace("-", "_")
    defaults = {field.name: getattr(DEFAULT_SETTINGS, field.name) for field in fields(DEFAULT_SETTINGS)}
    simple = [known for known, value in defaults.items() if isinstance(value, int | float | str) and known != "lease"]
    if equals and name in _LISTS:
        return name, _LISTS[name](pair, [part for part in text.split(",") if part])
    if not equals or name not in simple:
        near = get_close_matches(name, [*simple, *_LISTS], n=1)
        hint = f"did you mean {near[0]!r}?" if near else "docs/reference/settings.md lists all settings"
        raise LocalError(f"--set {pair!r} is not the NAME=VALUE of a setting; {hint}")
    default = defaults[name]
    if isinstance(default, str):
        return name, text
    value = _number(text)
    if isinstance(default, bool) != isinstance(value, bool) or not isinstance(value, int | type(default)):
        wanted = {bool: "true or false", int: "an integer", float: "a number"}[type(default)]
        raise LocalError(f"--set {pair!r}: {name} must be {wanted}")
    return name, value


def _number(text: str) -> object:
    """Return a number or boolean in TOML's syntax; None if `text` is not valid TOML."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return None


def _sizes(pair: str, parts: list[str]) -> tuple[tuple[str, int], ...]:
    """Return routes and sizes: ``ticks:8,quotes:16``."""
    found: list[tuple[str, int]] = []
    for part in parts:
        route, colon, size = part.rpartition(":")
        number = _number(size)
        if not colon or type(number) is not int:
            raise LocalError(f"--set {pair!r}: {part!r} must be ROUTE:BYTES")
        found.append((route, number))
    return tuple(found)


_LISTS: Final[dict[str, Callable[[str, list[str]], Any]]] = {
    "extensions": lambda pair, parts: tuple(parts),
    "element_sizes": _sizes,
    "trusted_proxies": lambda pair, parts: tuple(parts),
}
"""Settings whose value is a comma-separated list."""
