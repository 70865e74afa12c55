"""Commands that people copy and paste into an interactive shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weirpool.reflection.commands import as_command
from weirpool.texts import shell_line

from .terminal import PASTE, Terminal, install, shell

URL = "rsocket+tcp://localhost:7878"
CONTROLS = [chr(code) for code in (*range(1, 0x20), *range(0x7F, 0xA0))]
MARKS = list("\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
ATTACKS = [
    "x\x03\ntouch pwned\n",
    "y\x1b[201~\x03\ntouch pwned\n",
    "z\x15touch pwned\r",
    "\x18\x05touch pwned\n",
    "a\x04b\x1ac\x1c",
    "\x9b201~\x03\ntouch pwned\n",
]
PRINTABLE = [
    "plain", "", " ", "it's", "'", "\\", "\\'", "'\\''", '\'"; touch pwned; #', "\\'\"; touch pwned; #",
    "\\' ; touch pwned ; '", "$(touch pwned)", "`touch pwned`", "${IFS}", "$'a'", '"$(touch pwned)"', "a;b|c&d>e<f",
    "!!", "!x '!' y", "it's !x", "^a^b", "=ls", "~", "~root", "%self", "*", "[a-z]?", "{a,b}", "#x", "-n",
    "é ✓ \U0001f600",
    "\u200d".join("\U0001f468\U0001f469"), "a\\", "\\\\", "((", "@x", "NUL",
]  # fmt: skip
PROGRAM = """#!/bin/sh
printf '%s\\0' "$@" > words.part
if [ -t 0 ]; then : > items; else cat > items; fi
mv words.part words
"""


@contextmanager
def pasting(name: str, folder: Path) -> Iterator[Terminal]:
    """A shell with a program that writes down which words it was given, and what it could read."""
    install(PROGRAM, folder)
    with shell(name, folder) as terminal:
        yield terminal


def words_of(terminal: Terminal, folder: Path, command: str, bracketed: bool) -> list[str]:
    """Paste a command, press Enter, and return the words that the program was given."""
    first, last = PASTE if bracketed else (b"", b"")
    terminal.type(first + command.encode() + last + b"\r")
    found = terminal.until_file(folder / "words").decode(errors="surrogateescape")
    return found.split("\0")[:-1]


# THREATS 109
@pytest.mark.parametrize("bracketed", [True, False], ids=["bracketed", "typed"])
@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_a_pasted_command_has_the_words_that_were_meant(name: str, bracketed: bool, tmp_path: Path) -> None:
    every = ["".join(CONTROLS), "".join(MARKS), *ATTACKS, *PRINTABLE]
    with pasting(name, tmp_path) as terminal:
        for at in range(0, len(every), 8):
            some = every[at : at + 8]
            assert words_of(terminal, tmp_path, f"weirpool {shell_line(some)}", bracketed) == some
        for text in ("".join(CONTROLS), *ATTACKS):
            command = as_command(f"{URL}?{text}", text, "upload", text, [text, text], ["--set", text])
            words = words_of(terminal, tmp_path, command, bracketed)
            assert words[:8] == ["upload", f"{URL}?{text}", text, "-", "-d", text, "--set", text]
            # Items are lines; those that would be several are written as JSON.
            lines = (tmp_path / "items").read_text().removesuffix("\n").split("\n")
            assert ([json.loads(line)["data"] for line in lines] if words[8:] else lines) == [text, text]
    assert not (tmp_path / "pwned").exists()


def test_fish_reads_the_same_words_or_refuses_the_command(tmp_path: Path) -> None:
    with pasting("fish", tmp_path) as terminal:
        for at in range(0, len(PRINTABLE), 8):
            some = [text for text in PRINTABLE[at : at + 8] if text.isprintable()]
            assert words_of(terminal, tmp_path, f"weirpool {shell_line(some)}", True) == some
    for text in ATTACKS:
        with pasting("fish", tmp_path) as terminal:
            terminal.type(PASTE[0] + as_command(URL, text, "call").encode() + PASTE[1] + b"\r")
            terminal.until(b"after this $")
    assert not (tmp_path / "words").exists()
    assert not (tmp_path / "pwned").exists()


def test_such_a_text_is_an_attack_in_quotes(tmp_path: Path) -> None:
    # The tests above can fail: quotes alone let these commands do what they want.
    for name, text in (("bash", ATTACKS[0]), ("bash", ATTACKS[1])):
        with pasting(name, tmp_path) as terminal:
            terminal.type(PASTE[0] + shlex.join(["weirpool", text]).encode() + PASTE[1] + b"\r")
            terminal.until_file(tmp_path / "pwned")
    with pasting("fish", tmp_path) as terminal:
        terminal.type(PASTE[0] + shlex.join(["weirpool", PRINTABLE[9]]).encode() + PASTE[1] + b"\r")
        terminal.until_file(tmp_path / "pwned")
