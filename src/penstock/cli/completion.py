"""`penstock completion`: shell completion of verbs and options."""

from __future__ import annotations

from typing import Annotated, Any, Final

from typer import Argument

from ..errors import LocalError
from .arguments import offering

__all__ = ["SCRIPTS", "candidates", "completion"]

ASK: Final = "words"
"""The scripts pass this instead of a shell's name, to get the candidates for the words that follow."""

SCRIPTS: Final = {
    # Each script passes the words up to the cursor, and offers files if there are no candidates.
    "bash": """_penstock() {
    local IFS=$'\\n'
    COMPREPLY=( $(penstock completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) )
}
complete -o default -F _penstock penstock
""",
    "zsh": """#compdef penstock
_penstock() {
    local -a found
    found=( ${(f)"$(penstock completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"} )
    if (( ${#found} )); then compadd -a found; else _files; fi
}
if [[ $funcstack[1] == _penstock ]]; then _penstock "$@"; else compdef _penstock penstock; fi
""",
    "fish": """function __penstock_words
    set --local before (commandline --current-process --tokenize --cut-at-cursor)
    penstock completion words -- $before[2..] (commandline --current-token --cut-at-cursor) 2>/dev/null
end
complete --command penstock --arguments '(__penstock_words)'
""",
}
"""The completion script of each shell."""


def completion(
    shell: Annotated[str, Argument(help=f"{', '.join(SCRIPTS)}.", autocompletion=offering(*SCRIPTS))],
    typed: Annotated[list[str] | None, Argument(metavar="", hidden=True)] = None,
) -> None:
    """Print a script that makes a shell complete verbs and options.

    Put `eval "$(penstock completion bash)"` in ~/.bashrc, the same with zsh in ~/.zshrc after compinit, or
    `penstock completion fish | source` in ~/.config/fish/config.fish.

    Example: penstock completion bash > ~/.local/share/bash-completion/completions/penstock
    """
    if shell == ASK:
        for word in candidates(typed or [""]):
            print(word)
    elif shell in SCRIPTS:
        print(SCRIPTS[shell], end="")
    else:
        raise LocalError(f"no completion script for {shell!r}; use one of: {', '.join(SCRIPTS)}")


def candidates(words: list[str]) -> list[str]:
    """Return the completions of the last word, in order; none if any value is allowed there.

    Args:
        words: The words after `penstock`, up to the cursor.

    """
    from .parser import command

    *before, last = words
    here, rest = command(), before
    while rest and hasattr(here, "commands"):
        if rest[0] not in here.commands:
            return []
        here, rest = here.commands[rest[0]], rest[1:]
    option = _option(here, rest[-1]) if rest else None
    if option is not None and not option.is_flag:
        return _fitting(_values(here, option, last), last)
    if last.startswith("-"):
        return _fitting([*(text for option in _options(here) for text in option.opts), "--help"], last)
    if hasattr(here, "commands"):
        return _fitting(list(here.commands), last)
    return _fitting(_argument_values(here, rest, last), last)


def _fitting(words: list[str], beginning: str) -> list[str]:
    return [word for word in words if word.startswith(beginning)]


def _options(here: Any) -> list[Any]:
    return [each for each in here.params if each.param_type_name == "option"]


def _option(here: Any, word: str) -> Any:
    """Return the option that `word` names, or None."""
    return next((option for option in _options(here) if word in option.opts), None)


def _argument_values(here: Any, before: list[str], beginning: str) -> list[str]:
    """Return the known values of the argument that follows the words `before`."""
    given: list[str] = []
    words = iter(before)
    for word in words:
        option = _option(here, word)
        if option is not None and not option.is_flag:
            next(words, None)
        elif not word.startswith("-"):
            given.append(word)
    arguments = [each for each in here.params if each.param_type_name == "argument"]
    if len(given) >= len(arguments):
        return []
    return _values(
        here, arguments[len(given)], beginning, dict(zip((each.name for each in arguments), given, strict=False))
    )


def _values(here: Any, parameter: Any, beginning: str, given: dict[str, str] | None = None) -> list[str]:
    """Return the known values of a parameter. `given` are the arguments before it."""
    context = here.context_class(here, info_name=here.name, resilient_parsing=True)
    context.params.update(given or {})
    found = parameter.shell_complete(context, beginning)
    return [str(item.value) for item in found if item.type == "plain"]
