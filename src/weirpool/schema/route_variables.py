"""Routes with variables in generated code, whose methods take the values as arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .naming import Names

__all__ = ["filled", "variables_of", "without_braces"]

_VARIABLE: Final = re.compile(r"\{([^\W\d]\w*)\}")


def variables_of(route: str) -> list[str]:
    """Return the names of a route's variables, in order: ``quotes.{symbol}`` has `symbol`."""
    return [found[1] for segment in route.split(".") if (found := _VARIABLE.fullmatch(segment))]


def without_braces(name: str) -> str:
    """Return a part of a route as the name of a method."""
    return name.replace("{", "").replace("}", "")


def filled(
    route: str, names: Names, escaped: Callable[[str], str], value: Callable[[str], str]
) -> tuple[list[str], str]:
    """Return the parameters for a route's variables, and the text of a template that contains them.

    Args:
        route: The route.
        names: The names that the parameters must not have.
        escaped: Returns the text of a segment within the template.
        value: Returns what inserts a parameter into the template. A dot must be ``%2E``, so that it ends no segment.

    """
    parameters = [names.give(name, "variable") for name in variables_of(route)]
    values = iter(parameters)
    segments = [
        value(next(values)) if _VARIABLE.fullmatch(segment) else escaped(segment) for segment in route.split(".")
    ]
    return parameters, ".".join(segments)
