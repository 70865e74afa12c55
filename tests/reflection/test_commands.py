"""Requests as text to copy: shells and Python read them back as what they were."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.missing import need
from weirpool import LocalError
from weirpool.reflection.commands import as_command, as_python

URL = "rsocket+tcp://localhost:7878"
HOSTILE = ["plain", "it's", '"$(id)" `id`', "a\\nb", "$HOME; ls", "é ✓", "%s %d", "-5", "--help"]

# Prints what it was given, as the command line reads it.
SHOW = """
import sys, json, pathlib
words = sys.argv[1:]
at = words.index("-d") + 1 if "-d" in words else None
data = None if at is None else words[at]
if data == "-":
    data = sys.stdin.read()
elif data is not None and data.startswith("@"):
    data = pathlib.Path(data[1:]).read_text()
items = None if sys.stdin.isatty() else [line for line in sys.stdin.read().split(chr(10)) if line]
print(json.dumps([words, data, items]))
"""


def in_shell(command: str, folder: Path, shell: str = "sh") -> tuple[list[str], str | None, list[str]]:
    """Run a command in a shell, with a `weirpool` that shows what it was given."""
    if shell != "sh":
        need(shell)
    (folder / "show.py").write_text(SHOW)
    script = f'weirpool() {{ {sys.executable} {folder}/show.py "$@"; }}\n{command}\n'
    result = subprocess.run([shell, "-c", script], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    words, data, items = ast.literal_eval(result.stdout.replace("null", "None"))
    return words, data, items


@pytest.mark.parametrize("data", HOSTILE)
def test_data_is_quoted(data: str, tmp_path: Path) -> None:
    words, given, _ = in_shell(as_command(URL, "a route", "call", data, options=["--header", "A: b c"]), tmp_path)
    assert words == ["call", URL, "a route", "-d", data, "--header", "A: b c"] and given == data


@pytest.mark.parametrize("data", ["@file", "@", "-"])
def test_data_that_would_name_a_file_is_piped(data: str, tmp_path: Path) -> None:
    assert in_shell(as_command(URL, "r", "call", data), tmp_path)[1] == data


def test_data_that_would_name_a_file_beside_items(tmp_path: Path) -> None:
    _, data, items = in_shell(as_command(URL, "r", "upload", "@file", ["1", "2"]), tmp_path, "bash")
    assert (data, items) == ("@file", ["1", "2"])


def test_items_are_lines(tmp_path: Path) -> None:
    words, _, items = in_shell(as_command(URL, "r", "channel", "", HOSTILE), tmp_path)
    assert words == ["channel", URL, "r", "-"] and items == HOSTILE
    assert in_shell(as_command(URL, "r", "upload"), tmp_path)[2] == []


def test_items_with_line_breaks_are_objects(tmp_path: Path) -> None:
    words, _, items = in_shell(as_command(URL, "r", "upload", "", ["a\nb", ""]), tmp_path)
    assert words[-1] == "--json-items" and items == ['{"data": "a\\nb"}', '{"data": ""}']


def test_a_route_that_looks_like_an_option(tmp_path: Path) -> None:
    words, _, _ = in_shell(as_command(URL, "--help", "call", "x"), tmp_path)
    assert words == ["call", "-d", "x", "--", URL, "--help"]


@pytest.mark.parametrize("kind", ["call", "fire", "stream", "upload", "channel"])
@pytest.mark.parametrize("data", ["", '{"a": [1, null, true]}', "no 'json'", "NaN"])
@pytest.mark.parametrize("settings", [{}, {"data_mime": "application/json"}])
def test_programs_are_valid(kind: str, data: str, settings: dict[str, str]) -> None:
    source = as_python(URL, "a 'route'", kind, data, ["1"] if kind in ("upload", "channel") else [], settings)
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    [made] = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == kind]
    assert ast.literal_eval(made.args[0]) == "a 'route'"
    typed = "weirpool.typed" in source
    sends = kind in ("upload", "channel")
    assert typed == (bool(settings) and data not in ("no 'json'", "NaN") and (bool(data) or sends))
    if data:
        assert ast.literal_eval(made.args[1]) == ({"a": [1, None, True]} if typed else data)


@pytest.mark.parametrize(
    ("url", "settings", "typed"),
    [
        ("river+tcp://h:1", {}, True),
        ("river+tcp://h:1?codec=msgpack", {}, True),
        (URL, {}, False),
        (URL, {"data_mime": "application/x+json"}, True),
        (URL, {"data_mime": "application/msgpack"}, False),
    ],
)
def test_programs_have_values_where_people_write_json(url: str, settings: dict[str, str], typed: bool) -> None:
    assert ("weirpool.typed" in as_python(url, "r", "call", "[1]", settings=settings)) is typed


@pytest.mark.parametrize(
    "kind",
    ["", "Call", "call ", "call; touch x #", "call('x'); __import__('os').system('x'); await peer.call", "call\x1b[8m"],
)
def test_another_kind_is_refused(kind: str) -> None:
    # It is the name of a verb and of a method, and no quotes would make it one.
    for write in (as_command, as_python):
        with pytest.raises(LocalError, match="kinds are call, fire, stream, upload, channel"):
            write(URL, "r", kind)


HOSTILE_PARTS = [
    "".join(map(chr, range(1, 0x20))),
    "\x7f" + "".join(map(chr, range(0x80, 0xA0))),
    "\u202e\u2028\u2066",
    "a\x03\n",
]


# THREATS 109
@pytest.mark.parametrize("text", HOSTILE_PARTS)
def test_no_part_of_a_command_has_control_characters(text: str, tmp_path: Path) -> None:
    command = as_command(f"{URL}/{text}", text, "upload", text, [text], ["--header", text])
    assert command.isprintable()
    words, data, [item] = in_shell(command, tmp_path, "bash")
    assert words[:8] == ["upload", f"{URL}/{text}", text, "-", "-d", text, "--header", text] and data == text
    assert (json.loads(item)["data"] if words[8:] else item) == text


@pytest.mark.parametrize("part", [{"url": "a\0"}, {"route": "a\0"}, {"data": "a\0"}, {"options": ["a\0"]}])
def test_a_command_without_its_words_is_not_made(part: dict[str, Any]) -> None:
    with pytest.raises(LocalError, match="NUL character, which no argument"):
        as_command(**{"url": URL, "route": "r", "kind": "call"} | part)


@pytest.mark.parametrize(
    "data", ["[1e999]", "[" * 200 + "]" * 200, "[" * 100_000, "9" * 5_000, '"\\ud800"', "\x1b[2J\u202e"]
)
def test_a_program_is_valid_for_all_data(data: str) -> None:
    for text in (data, data + "]"):
        source = as_python(URL, "\x1b[2J\u202e'", "call", text, settings={"data_mime": "application/json"})
        ast.parse(source)
        assert source.replace("\n", "").isprintable()
