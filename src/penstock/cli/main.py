"""The command line as a program: runs a verb, and reports an error as one line and an exit code."""

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
"""Characters of an error's data to print."""
EXTRAS: Final = {
    "pandas": "spark",
    "prometheus_client": "metrics",
    "pyarrow": "arrow",
    "pyspark": "spark",
    "websockets": "websocket",
    "xxhash": "arrow",
}
"""The extra that installs a package; `demo` installs all others."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit with 0 (success), 1 (peer error), 2 (usage error) or 3 (no connection).

    Args:
        arguments: The arguments after `penstock`; by default those of this process.

    """
    if find_spec("typer") is None:
        complain("the command line needs packages that are not installed; run: pip install 'penstock[cli]'")
        sys.exit(WRONG_USE)
    sys.exit(_guarded(sys.argv[1:] if arguments is None else arguments))


def _guarded(arguments: list[str]) -> int:
    """Run a verb, print an expected error as one line, and return the exit code."""
    try:
        from .parser import invoke

        code = invoke(arguments or ["--help"])
        sys.stdout.flush()
        return code
    except PenstockError as error:
        complain(_error_text(error))
        return exit_code(error)
    except KeyboardInterrupt:
        return CANCELED
    except TimeoutError:
        complain("the time limit of --timeout was exceeded")
        return FAILED
    except BrokenPipeError:
        # The reader of our output has closed the pipe.
        _drop_output()
        return OK
    except OSError as error:
        _drop_output()
        complain(f"system error: {error}")
        return FAILED
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        complain(f"{error}; run: pip install 'penstock[{EXTRAS.get(package, 'demo')}]'")
        return WRONG_USE


def _error_text(error: PenstockError) -> str:
    """Return the text of an error, with the data that a peer sent with it."""
    text = str(error)
    if not isinstance(error, ApplicationError) or error.data in (b"", error.message.encode()):
        return text
    data = error.data.decode(errors="replace")
    return f"{text} {data[:DATA_CHARACTERS]}{'…' if len(data) > DATA_CHARACTERS else ''}"


def _drop_output() -> None:
    """Discard buffered output, which Python would try to write again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
