"""The verbs and their parser."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer import Option

from .exits import OK, WRONG_USE
from .output import complain

__all__ = ["VERBS", "command", "invoke", "long_options"]

VERBS: Final = (
    "call",
    "stream",
    "fire",
    "upload",
    "channel",
    "push",
    "serve",
    "bridge",
    "record",
    "replay",
    "mock",
    "bench",
    "collect",
    "top",
    "journal",
    "audit",
    "river",
    "decode",
    "encode",
    "rules",
    "doctor",
    "demo",
    "completion",
)
"""In the order of `--help`. Each is a function in the module of its name or of `SHARED`, or the `app` of a module."""
SHARED: Final = {
    "requests": ("call", "stream", "fire", "upload", "channel", "push"),
    "frames": ("decode", "encode"),
}
"""Modules with several verbs."""
MODULES: Final = {verb: verb for verb in VERBS} | {verb: module for module, verbs in SHARED.items() for verb in verbs}

UsageError: Final[type[Exception]] = typer.BadParameter.__bases__[0]
"""The parser's exception. No version of typer gives it a public name."""


def invoke(arguments: list[str]) -> int:
    """Run the verb in `arguments`, and return the exit code. Exceptions of the verb are propagated."""
    penstock = command(arguments)
    try:
        # penstock.main() would handle exit codes, interrupts and closed pipes in its own way.
        with penstock.make_context("penstock", list(arguments)) as context:
            penstock.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except UsageError as error:
        complain(_usage_text(error))
        return WRONG_USE
    return OK


def command(arguments: Sequence[str] = ()) -> Any:
    """Return the command with the verb in `arguments`, or with all verbs if there is none.

    It is a click group, whose type has no public name in any version of typer.
    """
    return typer.main.get_command(_app(arguments))


def long_options() -> dict[str, set[str]]:
    """Return the long options, without dashes, of each verb that reads a file of options."""
    verbs = command().commands.items()
    known = {name: {text[2:] for each in verb.params for text in each.opts if text[:2] == "--"} for name, verb in verbs}
    return {name: options - {"options"} for name, options in known.items() if "options" in options}


def _usage_text(error: Exception) -> str:
    """Return the text of a usage error, with a pointer to the help."""
    message = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    path = getattr(getattr(error, "ctx", None), "command_path", "penstock")
    return f"{message}; see {path} --help"


def _app(arguments: Sequence[str]) -> typer.Typer:
    """Return the app with the verb in `arguments`, or with all verbs if there is none."""
    app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
    app.callback()(_penstock)
    for verb in [verb for verb in VERBS if verb in arguments[:1]] or VERBS:
        module = import_module(f".{MODULES[verb]}", __package__)
        if hasattr(module, "app"):
            app.add_typer(module.app, name=verb)
        else:
            app.command(verb)(getattr(module, verb))
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"penstock {__version__}")
        raise typer.Exit


def _penstock(
    version: Annotated[bool, Option("--version", help="Print the version.", callback=_version)] = False,
) -> None:
    """Stream live data over RSocket and related protocols into Python and Apache Spark."""
