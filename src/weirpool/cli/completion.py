"""`weirpool completion`: shell completion of verbs, options and values, by typer."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Annotated, Any, Final

from typer import Argument

from ..errors import LocalError
from .contexts import MARK, with_context
from .values import ASKED, offering

__all__ = ["answer", "completion", "rejoined"]

PROGRAM: Final = "weirpool"
SHELLS: Final = ("bash", "zsh", "fish", "powershell", "pwsh")


def completion(
    shell: Annotated[str, Argument(help=f"{', '.join(SHELLS)}.", autocompletion=offering(*SHELLS))],
) -> None:
    """Print a script that makes a shell complete verbs, options and values.

    `weirpool --install-completion` installs it for the current shell.

    Example: eval "$(weirpool completion bash)"
    """
    if shell not in SHELLS:
        raise LocalError(f"no completion script for {shell!r}; use one of: {', '.join(SHELLS)}")
    os.environ[ASKED] = f"source_{shell}"
    try:
        answer()
    finally:
        del os.environ[ASKED]


def answer() -> None:
    """Print what is asked for, the script of a shell or the candidates for a word, and exit."""
    from .parser import command

    if os.environ[ASKED] == "complete_bash":
        words, current = rejoined(os.environ.get("COMP_WORDS", "").split("\n"), int(os.environ.get("COMP_CWORD", "0")))
        os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(words), str(current)
    else:
        words = os.environ.get("_TYPER_COMPLETE_ARGS", "").split()
    # The verb alone is loaded, once it is known.
    weirpool = command(words[1:] if len(words) > 2 else ())
    _insert_context(words, weirpool)
    weirpool.main(prog_name=PROGRAM)


def _insert_context(words: list[str], weirpool: Any) -> None:
    """Complete the words as if the context were there that stands for a URL that is left out."""
    if any(word.startswith(MARK) for word in words[2:3]):
        # The name of another context is being typed.
        return
    with suppress(LocalError):
        given = with_context(words[1:], weirpool)
        if words and len(given) == len(words):
            verb, name = given[:2]
            os.environ["COMP_WORDS"] = "\n".join([words[0], *given])
            os.environ["COMP_CWORD"] = str(int(os.environ.get("COMP_CWORD", "0")) + 1)
            line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
            os.environ["_TYPER_COMPLETE_ARGS"] = line.replace(f" {verb} ", f" {verb} {name} ", 1)


def rejoined(words: list[str], current: int) -> tuple[list[str], int]:
    """Return the words that the user sees, and the index of the current one.

    Bash also divides words at each colon and equals sign (COMP_WORDBREAKS), and so every URL, and after the at sign of
    a context.
    """
    whole: list[str] = []
    place = 0
    glued = False
    for index, word in enumerate(words):
        is_break = re.fullmatch(r"[:=]+", word) is not None
        if whole and (glued or is_break):
            whole[-1] += word
        else:
            whole.append(word)
        glued = is_break or word == "@"
        if index == current:
            place = len(whole) - 1
    return whole, place if current < len(words) else len(whole)
