"""What calling a function of the application returns, which is known before it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from .errors import LocalError

__all__ = ["check_plain", "is_async", "yields"]


def is_async(function: Callable[..., Any]) -> bool:
    """Return True if calling `function` returns a coroutine: it is a coroutine function, or calls one.

    A partial and an object with an async ``__call__`` do.
    """
    return any(map(inspect.iscoroutinefunction, _called(function)))


def yields(function: Callable[..., Any]) -> bool:
    """Return True if calling `function` returns a generator or an async generator; see `is_async`."""
    return any(inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each) for each in _called(function))


def check_plain(function: Any, what: str) -> None:
    """Check that a function can be called where nothing is awaited; errors call it `what`.

    Raises:
        LocalError: It is a coroutine function or a generator function, whose code would never run.

    """
    if is_async(function) or yields(function):
        raise LocalError(f"{what} must be a plain function: nothing awaits the result of a coroutine function there")


def _called(function: Callable[..., Any]) -> tuple[Any, Any]:
    while isinstance(function, partial):
        function = function.func
    # `callable` would not tell what the method is.
    return function, getattr(type(function), "__call__", None)  # noqa: B004
