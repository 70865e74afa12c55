from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import typer

import weirpool as package
from tests.cli.conftest import Weirpool, assert_one_line
from tests.cli.reference import PAGE, Reference
from weirpool.cli.parser import VERBS, command

Verb = tuple[str, ...]


def verbs_of(group: Any, path: Verb = ()) -> Iterator[tuple[Verb, Any]]:
    """Yield each verb, those of groups as two words, with its command."""
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from verbs_of(each, (*path, name))
        else:
            yield (*path, name), each


COMMANDS = dict(verbs_of(command()))


def test_help_lists_every_verb(weirpool: Weirpool) -> None:
    result = weirpool("--help")
    assert result.code == 0
    assert [verb for verb in VERBS if f" {verb} " not in result.out.decode()] == []
    assert weirpool().out == result.out


@pytest.mark.parametrize("verb", COMMANDS, ids=" ".join)
def test_help_of_every_verb_shows_an_example(weirpool: Weirpool, verb: Verb) -> None:
    result = weirpool(*verb, "--help")
    assert result.code == 0
    example = " ".join(result.out.decode().partition("Example: ")[2].split())
    assert f"weirpool {' '.join(verb)}" in example.partition("─")[0]


def test_reference_lists_every_verb() -> None:
    table = PAGE.read_text().partition("\n## ")[0]
    assert [verb for verb in VERBS if f"`{verb}`" not in table] == []


def test_help_shows_no_types_of_python(weirpool: Weirpool) -> None:
    for words in ((), ("context",), ("context", "add"), ("call",)):
        assert b"<bool>" not in weirpool(*words, "--help").out


def undescribed(verb: Verb, parameters: list[Any], page: str) -> Iterator[str]:
    """Yield what the page does not say of a verb where it should: its arguments, options and their values."""
    reference = Reference(page, list(COMMANDS))
    text, calls = reference.of(verb), reference.calls(verb)
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    if (call := " ".join(["weirpool", *verb, *map(usage, arguments)])) not in calls:
        yield f"{call!r}; there is {calls}"
    for each in parameters:
        names = [name for name in each.opts if name != "--help" and each not in arguments]
        yield from (name for name in names if not re.search(rf"`(?:[^`\n]* )?{name}(?![\w-])[^`\n]*`", text))
        values = [item.value for item in each.shell_complete(typer.Context(COMMANDS[verb]), "")]
        yield from (f"{each.opts[0]} {value}" for value in values if f"`{value}`" not in text)


def usage(argument: Any) -> str:
    """Return an argument as the page shows it."""
    name: str = argument.metavar
    return name if argument.required or name.startswith("[") else f"[{name}]"


@pytest.mark.parametrize("verb", COMMANDS, ids=" ".join)
def test_reference_describes_every_option_argument_and_value(verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    # The user's contexts would be values.
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nowhere")
    assert list(undescribed(verb, COMMANDS[verb].params, PAGE.read_text())) == []


def test_reference_describes_the_options_without_a_verb() -> None:
    names = {name for each in command().params for name in each.opts if name.startswith("--")}
    assert {name for name in names if f"{name}`" not in PAGE.read_text()} == set()


class Parameter:
    """A parameter that a verb might get."""

    def __init__(self, *opts: str, required: bool = True, values: Sequence[str] = ()) -> None:
        self.opts = opts
        self.metavar = opts[0]
        self.param_type_name = "option" if opts[0].startswith("-") else "argument"
        self.required = required
        self._values = values

    def shell_complete(self, context: object, incomplete: str) -> list[Any]:
        return [SimpleNamespace(value=value) for value in self._values]


@pytest.mark.parametrize(
    ("verb", "parameter", "expected"),
    [
        # Other verbs have them.
        ("doctor", Parameter("--quiet", "-q"), ["--quiet", "-q"]),
        (
            "doctor",
            Parameter("FOLDER"),
            ["'weirpool doctor [EXTRA]... FOLDER'; there is ['weirpool doctor [EXTRA]...']"],
        ),
        # Other verbs of the section have them.
        ("call", Parameter("--take"), ["--take"]),
        ("fire", Parameter("--json"), ["--json"]),
        ("replay", Parameter("--items"), ["--items"]),
        ("journal ls", Parameter("--force"), ["--force"]),
        # The connection, which is not the session.
        ("ui", Parameter("--retry"), ["--retry"]),
        # There is --to-set.
        ("bridge", Parameter("--to"), ["--to"]),
        ("top", Parameter("--json", values=["yaml"]), ["--json yaml"]),
        ("collect", Parameter("--log", values=["text", "json", "logfmt"]), ["--log logfmt"]),
    ],
)
def test_parameter_that_is_not_described_is_noticed(verb: str, parameter: Parameter, expected: list[str]) -> None:
    words = tuple(verb.split())
    assert list(undescribed(words, [*COMMANDS[words].params, parameter], PAGE.read_text())) == expected


def test_version(weirpool: Weirpool) -> None:
    assert weirpool("--version").out.decode() == f"weirpool {package.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("cal",), "Did you mean 'call'"),
        (("--bogus",), "--bogus; see weirpool --help"),
        (("call", "--bogus"), "--bogus; see weirpool call --help"),
        (("journal",), "see weirpool journal --help"),
        (("journal", "ls"), "see weirpool journal ls --help"),
    ],
)
def test_usage_error_is_one_line_with_a_pointer_to_help(
    weirpool: Weirpool, arguments: tuple[str, ...], part: str
) -> None:
    result = weirpool(*arguments)
    assert result.code == 2
    assert part in result.err
    assert_one_line(result)
