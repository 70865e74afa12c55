"""How a mistake is put into the code of the plain build, for the time of a block."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest import mock

__all__ = ["edited", "replaced", "together"]


@contextmanager
def replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Put other values in the place of attributes, each given as owner, name and value."""
    with ExitStack() as stack:
        for owner, name, value in changes:
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


@contextmanager
def edited(owner: Any, name: str, *edits: tuple[str, str]) -> Iterator[None]:
    """Run a function or method with its source changed.

    Args:
        owner: Its module or class.
        name: Its name there.
        edits: What to look for, and what to put in its place.

    Raises:
        LookupError: Its source does not hold that just once: the code has moved on, and so must the saboteur.

    """
    found = inspect.getattr_static(owner, name)
    function = getattr(found, "__func__", found)
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in edits:
        if source.count(old) != 1:
            raise LookupError(f"{function.__qualname__} holds {old!r} {source.count(old)} times; mend the saboteur")
        source = source.replace(old, new)
    module = sys.modules[function.__module__]
    space: dict[str, Any] = {}
    code = compile(source, f"<sabotaged {function.__qualname__}>", "exec", annotations.compiler_flag, True)
    exec(code, module.__dict__, space)
    made = space[function.__name__]
    with mock.patch.object(owner, name, type(found)(made) if isinstance(found, staticmethod | classmethod) else made):
        yield


@contextmanager
def together(*parts: AbstractContextManager[object]) -> Iterator[None]:
    """Make a mistake that takes several changes."""
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(part)
        yield
