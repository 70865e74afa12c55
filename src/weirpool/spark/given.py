"""Options as Spark passes them, how they are parsed, and the errors about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from ..errors import LocalError
from ..units import seconds as as_seconds
from ..units import size as as_size
from ..urls import parse_url

__all__ = [
    "FORMAT",
    "Given",
    "Plain",
    "as_count",
    "as_flag",
    "as_number",
    "as_seconds",
    "as_seconds_or_none",
    "as_size",
    "as_size_or_none",
    "as_text",
    "as_url",
    "one_of",
    "shown_value",
]

FORMAT: Final = "weirpool"
"""The name of the format in Spark."""

_SECRETS: Final = ("password", "set.headers", "setup", "token")
"""Options whose values are not in errors: those are in plans, in event logs and in Spark's user interface."""

T = TypeVar("T")

Plain = dict[str, tuple[str, Callable[[str], Any]]]
"""The fields that depend on one option alone: its name, and how to parse it."""


class Given:
    """The options as passed by Spark: names in lower case, values always strings.

    Args:
        options: The options.
        others: Names of options that are not in `plain`, separated by spaces; `set.*` allows any that begin so.
        plain: Options that become fields.

    Raises:
        LocalError: There is no such option.

    """

    def __init__(self, options: Mapping[str, str], others: str, plain: Plain) -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        known = [*others.split(), *(name for name, _ in plain.values())]
        names = {name.lower(): name for name in known}
        prefixes = tuple(name.removesuffix("*") for name in names if name.endswith("*"))
        for name in self._values.keys() - names.keys():
            if prefixes and name.startswith(prefixes):
                continue
            near = get_close_matches(name, names, n=1)
            hint = f'did you mean "{names[near[0]]}"?' if near else f"the options are {', '.join(sorted(known))}"
            raise LocalError(f'format "{FORMAT}" has no option "{name}" here; {hint}')

    def only(self, names: tuple[str, ...], where: str) -> None:
        """Refuse all options except these."""
        for name in self._values.keys() - {name.lower() for name in names}:
            raise LocalError(f'option "{name}" is not valid {where}; the options are {", ".join(names)}')

    def without(self, name: str, where: str) -> None:
        """Refuse an option that has no effect."""
        if name.lower() in self._values:
            raise LocalError(f'option "{name}" has no effect {where}')

    def fields(self, plain: Plain) -> dict[str, Any]:
        """Return the values of those fields whose option was passed."""
        passed = ((field, name, parse) for field, (name, parse) in plain.items() if name.lower() in self._values)
        return {field: self.get(name, parse, None) for field, name, parse in passed}

    def group(self, prefix: str) -> dict[str, str]:
        """Return the options that begin with `prefix`, without it."""
        return {name.removeprefix(prefix): value for name, value in self._values.items() if name.startswith(prefix)}

    def get(self, name: str, parse: Callable[[str], T], default: T) -> T:
        """Return the parsed value of an option, or its default."""
        text = self._values.get(name.lower())
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise LocalError(f'option "{name}" is {shown_value(name, text)}; {error}') from None


def shown_value(name: str, text: str) -> str:
    """Return the value of an option for an error."""
    return "hidden" if name in _SECRETS else repr(text)


def one_of(text: str, *words: str) -> str:
    """Return a word that is one of these; `ValueError` otherwise."""
    if text not in words:
        raise ValueError(f"it must be {' or '.join(words)}")
    return text


def as_text(text: str) -> str:
    """Return a text that is not empty; `ValueError` otherwise."""
    if not text.strip():
        raise ValueError("it must not be empty")
    return text


def as_url(text: str) -> str:
    """Return a URL that has been checked; `ValueError` otherwise."""
    return str(parse_url(text))


def as_count(text: str) -> int:
    """Return a whole number of at least 1; `ValueError` otherwise."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError("it must be a whole number of at least 1")
    return int(text)


def as_size_or_none(text: str) -> int:
    """Return a number of bytes, which may be 0; `ValueError` otherwise."""
    return as_size(text, 0)


def as_seconds_or_none(text: str) -> float | None:
    """Return a time in seconds, None for 0; `ValueError` otherwise."""
    return as_seconds(text) or None


def as_number(text: str) -> int:
    """Return a whole number of at least 0; `ValueError` otherwise."""
    if not text.strip().isdecimal():
        raise ValueError("it must be a whole number of at least 0")
    return int(text)


def as_flag(text: str) -> bool:
    """Return whether it is "true"; `ValueError` otherwise."""
    return one_of(text.strip().lower(), "true", "false") == "true"
