from __future__ import annotations

from pathlib import Path

import pytest

import penstock as package
from penstock.cli.parser import VERBS, long_options
from tests.cli.conftest import Penstock, assert_one_line

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
GROUPS = {"journal": ("ls", "tail", "verify"), "river": ("schema",)}
COMMANDS = [(verb, *inner) for verb in VERBS for inner in [(one,) for one in GROUPS.get(verb, ())] or [()]]


def test_help_lists_every_verb(penstock: Penstock) -> None:
    result = penstock("--help")
    assert result.code == 0
    assert [verb for verb in VERBS if f" {verb} " not in result.out.decode()] == []
    assert penstock().out == result.out


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_of_every_verb_shows_an_example(penstock: Penstock, command: tuple[str, ...]) -> None:
    result = penstock(*command, "--help")
    assert result.code == 0
    example = " ".join(result.out.decode().partition("Example: ")[2].split())
    assert f"penstock {' '.join(command)}" in example.partition("─")[0]


def test_reference_describes_every_verb() -> None:
    text = REFERENCE.read_text()
    assert [verb for verb in VERBS if f"`{verb}`" not in text] == []


def test_help_shows_no_types_of_python(penstock: Penstock) -> None:
    for words in ((), ("context",), ("context", "add"), ("call",)):
        assert b"<bool>" not in penstock(*words, "--help").out


def test_reference_describes_every_option() -> None:
    text = REFERENCE.read_text()
    for verb, options in long_options().items():
        assert [(verb, option) for option in sorted(options - {"help"}) if f"`--{option}" not in text] == []


def test_version(penstock: Penstock) -> None:
    assert penstock("--version").out.decode() == f"penstock {package.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("cal",), "Did you mean 'call'"),
        (("--bogus",), "--bogus; see penstock --help"),
        (("call", "--bogus"), "--bogus; see penstock call --help"),
        (("journal",), "see penstock journal --help"),
        (("journal", "ls"), "see penstock journal ls --help"),
    ],
)
def test_usage_error_is_one_line_with_a_pointer_to_help(
    penstock: Penstock, arguments: tuple[str, ...], part: str
) -> None:
    result = penstock(*arguments)
    assert result.code == 2
    assert part in result.err
    assert_one_line(result)
