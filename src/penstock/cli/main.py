"""The command line: `penstock VERB ...`, one file a verb."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from ..errors import PenstockError
from .exits import CANCELED, FAILED, OK, WRONG_USE, exit_code

__all__ = ["run"]

VERBS: Final = (
    "call",
    "stream",
    "fire",
    "upload",
    "channel",
    "serve",
    "collect",
    "journal",
    "decode",
    "encode",
    "doctor",
    "demo",
)
"""In the order in which `--help` lists them. Each is a module here, with a function of its name or an `app`."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit with 0 (fine), 1 (the other side said no), 2 (wrong use) or 3 (no connection)."""
    if find_spec("typer") is None:
        print("penstock: the command line needs more packages; run: pip install 'penstock[cli]'", file=sys.stderr)
        sys.exit(WRONG_USE)
    sys.exit(_guarded(sys.argv[1:] if arguments is None else arguments))


def _guarded(arguments: list[str]) -> int:
    """Run a verb and return the exit code; every error of ours is one line."""
    try:
        return _invoke(arguments)
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return exit_code(error)
    except KeyboardInterrupt:
        return CANCELED
    except TimeoutError:
        print("penstock: it took longer than --timeout allows", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # Whoever read our output has enough. Nothing more can be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except ModuleNotFoundError as error:
        print(f"penstock: the package {error.name} is missing; run: pip install 'penstock[demo]'", file=sys.stderr)
        return WRONG_USE


def _invoke(arguments: list[str]) -> int:
    import typer

    app = typer.Typer(
        help="Live streams over RSocket and its relatives, into Python and Apache Spark.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    wanted = [verb for verb in VERBS if verb in arguments[:1]] or VERBS
    for verb in wanted:
        module = import_module(f".{verb}", __package__)
        if hasattr(module, "app"):
            app.add_typer(module.app, name=verb)
        else:
            app.command(verb)(getattr(module, verb))

    @app.callback()
    def version() -> None:
        pass

    try:
        result = app(arguments, prog_name="penstock", standalone_mode=True)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else OK
    return result if isinstance(result, int) else OK
