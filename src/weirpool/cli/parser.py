"""The verbs and their parser."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer import Option

from .console import complain, say
from .contexts import needs_url, with_context
from .exits import OK, WRONG_USE

__all__ = ["VERBS", "command", "invoke", "long_options"]

VERBS: Final = (
    "call",
    "stream",
    "fire",
    "upload",
    "channel",
    "push",
    "describe",
    "ui",
    "serve",
    "playground",
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
    "codegen",
    "decode",
    "encode",
    "rules",
    "context",
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
    weirpool = command(arguments)
    try:
        # weirpool.main() would handle exit codes, interrupts and closed pipes in its own way.
        with weirpool.make_context("weirpool", with_context(arguments, weirpool)) as context:
            weirpool.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except SystemExit:
        # How rich ends when it prints the help, and its reader has closed the pipe.
        return OK
    except UsageError as error:
        complain(_usage_text(error, arguments))
        return WRONG_USE
    return OK


def command(arguments: Sequence[str] = ()) -> Any:
    """Return the command with the verb in `arguments`, or with all verbs if there is none.

    It is a click group, whose type has no public name in any version of typer.
    """
    made = typer.main.get_command(_app(arguments))
    _name_values(made, typer.Context(made, **made.context_settings))
    return made


def _name_values(command: Any, context: typer.Context) -> None:
    """Let the help name the value of each parameter as people do, ``--trace TRACE``, not its type in Python."""
    for each in getattr(command, "commands", {}).values():
        _name_values(each, context)
    for each in command.get_params(context):
        if getattr(each, "is_flag", False):
            each.metavar = ""
        elif each.metavar is None:
            each.metavar = each.opts[0].lstrip("-").replace("_", "-").upper()
        if each.param_type_name == "argument":
            # Its name says what it is.
            each.display_type_rich = _no_type


def _no_type(ctx: Any) -> None:
    """Return no type to show."""


def long_options() -> dict[str, set[str]]:
    """Return the long options, without dashes, of each verb that reads a file of options."""
    verbs = command().commands.items()
    known = {name: {text[2:] for each in verb.params for text in each.opts if text[:2] == "--"} for name, verb in verbs}
    return {name: options - {"options"} for name, options in known.items() if "options" in options}


def _usage_text(error: Exception, arguments: Sequence[str]) -> str:
    """Return the text of a usage error, with a pointer to the help."""
    message = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "weirpool")
    parameters = getattr(getattr(context, "command", None), "params", ())
    if message.startswith("Missing argument") and needs_url(parameters, arguments):
        message += "; begin with a URL, or choose a server with `weirpool context use NAME`"
    return f"{message}; see {path} --help"


def _app(arguments: Sequence[str]) -> typer.Typer:
    """Return the app with the verb in `arguments`, or with all verbs if there is none."""
    app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})
    app.callback()(_weirpool)
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

        say(f"weirpool {__version__}")
        raise typer.Exit


def _weirpool(
    version: Annotated[bool, Option("--version", help="Print the version.", callback=_version)] = False,
) -> None:
    """Stream live data over RSocket and related protocols into Python and Apache Spark."""
