"""The command line as a program: its exit code, and one line for every error."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Final

from ..errors import ApplicationError, PenstockError
from .exits import CANCELED, FAILED, OK, WRONG_USE, exit_code
from .output import complain

__all__ = ["run"]

DATA_CHARACTERS: Final = 2_000
"""How much is printed of the data of an error."""
EXTRAS: Final = {
    "pandas": "spark",
    "prometheus_client": "metrics",
    "pyarrow": "arrow",
    "pyspark": "spark",
    "xxhash": "arrow",
}
"""The extra that brings a package; `demo` brings all others that commands need."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit with 0 (fine), 1 (the other side said no), 2 (wrong use) or 3 (no connection).

    Args:
        arguments: What stands behind `penstock`; else those of this process.

    """
    if find_spec("typer") is None:
        complain("the command line needs more packages; run: pip install 'penstock[cli]'")
        sys.exit(WRONG_USE)
    sys.exit(_guarded(sys.argv[1:] if arguments is None else arguments))


def _guarded(arguments: list[str]) -> int:
    """Run a verb and return the exit code; every error that can be foreseen is one line."""
    try:
        from .parser import invoke

        code = invoke(arguments or ["--help"])
        sys.stdout.flush()
        return code
    except PenstockError as error:
        complain(_told(error))
        return exit_code(error)
    except KeyboardInterrupt:
        return CANCELED
    except TimeoutError:
        complain("it took longer than --timeout allows")
        return FAILED
    except BrokenPipeError:
        # Whoever read our output has enough.
        _drop_output()
        return OK
    except OSError as error:
        _drop_output()
        complain(f"the system says: {error}")
        return FAILED
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        complain(f"{error}; run: pip install 'penstock[{EXTRAS.get(package, 'demo')}]'")
        return WRONG_USE


def _told(error: PenstockError) -> str:
    """Return what is printed of an error: its text, and the data that a peer sent with it."""
    text = str(error)
    if not isinstance(error, ApplicationError) or error.data in (b"", error.message.encode()):
        return text
    data = error.data.decode(errors="replace")
    return f"{text} {data[:DATA_CHARACTERS]}{'…' if len(data) > DATA_CHARACTERS else ''}"


def _drop_output() -> None:
    """Send what is still to be printed nowhere: it cannot be written, and Python would try again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
