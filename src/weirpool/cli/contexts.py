"""Saved contexts: the URL of a server, and the options to connect to it with."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import msgspec
import typer

from ..access.private import replacing
from ..errors import LocalError
from ..strict_json import strict_json
from ..texts import concealed
from .places import configuration
from .values import completable

__all__ = [
    "ADDRESS",
    "MARK",
    "Contexts",
    "Saved",
    "check_name",
    "load",
    "needs_url",
    "offered",
    "offered_names",
    "resolved",
    "save",
    "with_context",
]

MARK: Final = "@"
"""Before the name of a context, in place of a URL."""
ADDRESS: Final = "weirpool.address"
"""The key of a command's metadata with its @NAME."""
VARIABLE: Final = "WEIRPOOL_CONTEXT"
LISTEN: Final = "--listen"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
URL: Final = re.compile(r"[a-z][a-z0-9.-]*\+[a-z0-9]+://.*", re.IGNORECASE)


class Saved(msgspec.Struct):
    """One context.

    Attributes:
        url: The server.
        options: The values of options, by the names of their parameters.

    """

    __repr__ = concealed

    url: str
    options: dict[str, Any] = {}


class Contexts(msgspec.Struct):
    """All contexts of a user.

    Attributes:
        current: The one that verbs use when no URL is given; empty if there is none.
        contexts: By name.

    """

    current: str = ""
    contexts: dict[str, Saved] = {}

    def find(self, name: str) -> Saved:
        """Return a context. Raises LocalError if there is none of this name."""
        if name in self.contexts:
            return self.contexts[name]
        near = get_close_matches(name, self.contexts, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "add it with `weirpool context add NAME URL`"
        raise LocalError(f"there is no context {name!r}; {hint}")


def _file() -> Path:
    return configuration("contexts.json")


def load() -> Contexts:
    """Return the user's contexts. Raises LocalError if their file cannot be read."""
    path = _file()
    try:
        return msgspec.convert(strict_json(path.read_bytes()), Contexts)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise LocalError(f"cannot read the contexts in {str(path)!r}: {error.strerror}") from error
    except (ValueError, msgspec.ValidationError) as error:
        raise LocalError(f"the contexts in {str(path)!r} are not valid: {error}; mend or remove the file") from error


def save(contexts: Contexts) -> None:
    """Write the user's contexts to a file that only the user can read, because it may contain credentials."""
    path = _file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalError(f"cannot write {str(path)!r}: {error.strerror}") from error
    with replacing(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(contexts)) + b"\n")


def check_name(name: str) -> None:
    """Raise LocalError if `name` is not a valid name of a context."""
    if NAME.fullmatch(name) is None:
        raise LocalError(f"{name!r} is not a name for a context; use letters, digits, '-', '_' and '.'")


def resolved(context: typer.Context, value: str | None) -> str | None:
    """Return the URL of an argument. For ``@NAME``, the options of that context become the defaults of the verb's."""
    if value is None or not value.startswith(MARK):
        return value
    try:
        saved = load().find(value.removeprefix(MARK))
    except LocalError:
        if context.resilient_parsing:
            return value
        raise
    known = {parameter.name for parameter in context.command.params}
    chosen = {name: given for name, given in saved.options.items() if name in known}
    context.meta[ADDRESS] = value
    context.default_map = dict(context.default_map or {}) | chosen
    return saved.url


def offered() -> list[str]:
    """Return the candidates for a URL."""
    return completable(f"{MARK}{name}" for name in offered_names())


def offered_names() -> list[str]:
    """Return the candidates for the name of a context."""
    with suppress(LocalError):
        return completable(load().contexts)
    return []


def with_context(arguments: Sequence[str], command: Any) -> list[str]:
    """Return the arguments of a command line with a context in place of a URL that is left out.

    Args:
        arguments: The words after `weirpool`.
        command: The command with their verb.

    Raises:
        LocalError: A context and a URL are given.

    """
    given = list(arguments)
    verb = getattr(command, "commands", {}).get(given[0]) if given else None
    url = next((each for each in getattr(verb, "params", ()) if each.name == "url"), None)
    if url is None or url.param_type_name != "argument":
        return given
    asked = _asked(given)
    if (given[1:2] and re.fullmatch(f"{MARK}{NAME.pattern}", given[1])) or any(map(URL.fullmatch, given[1:])):
        if asked:
            raise LocalError("--context names the server: use it without a URL")
        return given
    # Of the verbs whose URL is optional, `collect` has other sources.
    records_request = given[0] == "record" and not any(word.partition("=")[0] == LISTEN for word in given)
    needed = url.required or records_request
    name = asked or (os.environ.get(VARIABLE) or load().current if needed else "")
    if not name or "--help" in given or "-h" in given:
        return given
    return [given[0], f"{MARK}{name}", *given[1:]]


def needs_url(parameters: Sequence[Any], arguments: Sequence[str]) -> bool:
    """Return whether a verb with these parameters has a URL, and neither a URL nor a context is in its arguments."""
    named = any(word.startswith(MARK) or URL.fullmatch(word) for word in arguments[1:2])
    return not named and any(each.name == "url" and each.param_type_name == "argument" for each in parameters)


def _asked(given: list[str]) -> str:
    """Return the value of --context; empty without one."""
    for word, after in zip(given, [*given[1:], ""], strict=True):
        if word == "--context":
            return after
        if word.startswith("--context="):
            return word.partition("=")[2]
    return ""
