"""Options from a TOML file: the user's own, or the file of --options. The command line takes precedence."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer import Option

from ..errors import LocalError
from .places import configuration

__all__ = ["FILE", "OptionsFile", "apply"]

FILE: Final = "options.toml"
"""The user's own options, in the folder of the configuration."""


def apply(context: typer.Context, value: str | None) -> str | None:
    """Set the defaults of the current verb from a file.

    Args:
        context: The context of the verb.
        value: The file. None means the user's own file, if it exists; empty means no file.

    """
    path = configuration(FILE) if value is None else Path(value)
    if context.resilient_parsing or value == "" or (value is None and not path.is_file()):
        return value
    table = _read(path)
    verb = str(context.info_name)
    _check(table, path)
    chosen = {key: given for key, given in table.items() if not isinstance(given, dict)} | table.get(verb, {})
    # A context's own options, which are set before, take precedence.
    context.default_map = _defaults(context, chosen, path) | dict(context.default_map or {})
    return value


OptionsFile = Annotated[
    str | None,
    Option(
        "--options",
        metavar="FILE",
        is_eager=True,
        callback=apply,
        help="A TOML file of long options; by default options.toml in ~/.config/weirpool, if it exists.",
    ),
]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LocalError(f"cannot read the options in {str(path)!r}: {error.strerror}") from error
    except ValueError as error:
        raise LocalError(f"the options in {str(path)!r} are not valid TOML: {error}") from error


def _check(table: Mapping[str, Any], path: Path) -> None:
    """Reject unknown options, and options in a verb's table that the verb does not have."""
    from .parser import long_options

    known = long_options()
    everywhere = set().union(*known.values())
    for key, value in table.items():
        if not isinstance(value, dict):
            _known(key, everywhere, path, "no verb has")
        elif key not in known:
            raise LocalError(f"{str(path)!r} has a table [{key}], but no verb of that name reads options from a file")
        else:
            for option in value:
                _known(option, known[key], path, f"{key} does not have")


def _known(key: str, options: set[str], path: Path, whose: str) -> None:
    if key not in options:
        near = get_close_matches(key, options, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise LocalError(f"{str(path)!r} has an option {key!r}, which {whose}{hint}")


def _defaults(context: typer.Context, chosen: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the values for this verb's options, by parameter name."""
    found: dict[str, Any] = {}
    for parameter in context.command.params:
        for option in parameter.opts:
            if option.startswith("--") and option[2:] in chosen:
                value = chosen[option[2:]]
                if parameter.multiple != isinstance(value, list):
                    wanted = "a list" if parameter.multiple else "one value"
                    raise LocalError(f"{str(path)!r}: {option[2:]} must be {wanted}")
                found[str(parameter.name)] = value
    return found
