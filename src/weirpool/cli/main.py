"""The command line as a program: runs a verb, and reports an error as one line and an exit code.

Nothing here needs another package before a verb is run: one that is missing is reported like every error.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from ..errors import ApplicationError, ConnectError, WeirpoolError
from .console import complain, escape_everything
from .exits import CANCELED, FAILED, OK, WRONG_USE, exit_code

__all__ = ["run"]

DATA_CHARACTERS: Final = 2_000
"""Characters of an error's data to print."""
COMPLETE: Final = "_WEIRPOOL_COMPLETE"
"""Set by the shell when it wants candidates for a word, as typer's scripts do."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit with 0 (success), 1 (peer error), 2 (usage error) or 3 (no connection).

    Args:
        arguments: The arguments after `weirpool`; by default those of this process.

    """
    _open_closed_streams()
    escape_everything()
    sys.exit(_guarded(sys.argv[1:] if arguments is None else arguments))


def _open_closed_streams() -> None:
    """Open the standard streams that the parent has closed, so that no socket gets their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))


def _guarded(arguments: list[str]) -> int:
    """Run a verb, print an expected error as one line, and return the exit code."""
    try:
        if COMPLETE in os.environ:
            from .completion import answer

            answer()
        from .parser import invoke

        code = invoke(arguments or ["--help"])
        sys.stdout.flush()
        return code
    except WeirpoolError as error:
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
    except UnicodeEncodeError as error:
        complain(_encoding_text(error))
        return WRONG_USE
    except OSError as error:
        _drop_output()
        complain(f"system error: {error}")
        return FAILED
    except ModuleNotFoundError as error:
        from .extras import missing_text

        complain(missing_text(error))
        return WRONG_USE


_NO_ENCODING: Final = ("Cannot decode to [", "No encoder for ", "unknown data MIME type ")
"""What errors contain if the peer has no decoder or encoder for the MIME type of the data: Spring's and Weirpool's."""
_OPTIONS: Final = (
    ("pass its CA with ssl=... or ?ca=FILE", "pass its CA with --cafile FILE or ?ca=FILE"),
    ("pass one that it trusts with ssl=...", "pass one that it trusts with --cert FILE and --key FILE"),
)
"""What errors in connecting say to programs, and what to say to people: options instead of arguments."""


def _error_text(error: WeirpoolError) -> str:
    """Return the text of an error, with the options that help and the data that a peer sent with it."""
    text = str(error)
    if isinstance(error, ConnectError):
        for argument, option in _OPTIONS:
            text = text.replace(argument, option)
    if not isinstance(error, ApplicationError):
        return text
    if any(words in error.message for words in _NO_ENCODING):
        text += "; the peer does not convert this type of data: try --data-mime application/json"
    if error.data in (b"", error.message.encode()):
        return text
    data = error.data.decode(errors="replace")
    return f"{text} {data[:DATA_CHARACTERS]}{'…' if len(data) > DATA_CHARACTERS else ''}"


def _encoding_text(error: UnicodeEncodeError) -> str:
    """Return the text of an error in encoding a word of the command line, which may have any bytes, or the output."""
    if error.encoding != "utf-8":
        return f"the output has characters that {error.encoding} does not have; set PYTHONIOENCODING=utf-8"
    return f"{error.object[:DATA_CHARACTERS]!r} is not valid UTF-8; only data may have other bytes"


def _drop_output() -> None:
    """Discard buffered output, which Python would try to write again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
