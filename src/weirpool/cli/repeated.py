"""The options of a running command, for the commands that it prints. No secret is in them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import fields
from typing import Any, Final

import typer

from .contexts import ADDRESS
from .groups import words_of

__all__ = ["HIDDEN", "SECRET", "address_of", "is_given", "repeated", "without_secret"]

SECRET: Final = frozenset({"auth", "setup_auth", "header", "setup", "setup_metadata"})
"""Options whose values may be secret: only where they come from is shown."""
HIDDEN: Final = "(hidden)"
REFERENCE: Final = re.compile(r"(?:bearer:|simple:[^:]*:)?(?:@|env:).*")
HEADER: Final = re.compile(r"([A-Za-z0-9_-]+): .*")


def address_of(context: typer.Context, url: str) -> str:
    """Return the server as a command names it: its URL, or @NAME of the saved context that it is from."""
    address: str = context.meta.get(ADDRESS, url)
    return address


def repeated(context: typer.Context, group: Any, auth: str | None, *, skip: Collection[str] = ()) -> list[str]:
    """Return the words of the options that the command line has given to a group, and of --auth.

    Those of a saved context, of the file of options and of the environment need not be repeated.

    Args:
        context: The context of the running command.
        group: An instance of a dataclass of options; see `grouped`.
        auth: The value of --auth.
        skip: The names of fields to leave out.

    """
    others = {each.name for each in fields(group) if not is_given(context, each.name)}
    words = words_of(group, skip={*skip, *others}, shown=without_secret)
    return [*words, "--auth", without_secret("auth", auth)] if is_given(context, "auth") else words


def is_given(context: typer.Context, name: str) -> bool:
    """Return True if the command line has this option."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def without_secret(name: str, value: Any) -> Any:
    """Return the value of an option without the secret in it, unless it only says where that is."""
    if isinstance(value, list):
        return [without_secret(name, each) for each in value]
    if name not in SECRET or REFERENCE.fullmatch(str(value)):
        return value
    header = HEADER.fullmatch(str(value)) if name == "header" else None
    return HIDDEN if header is None else f"{header[1]}: {HIDDEN}"
