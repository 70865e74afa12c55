from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line
from tests.missing import need
from weirpool.cli.completion import SHELLS, rejoined
from weirpool.cli.parser import VERBS
from weirpool.protocols import VERSIONS

PROGRAM = f'#!/bin/sh\nexec "{sys.executable}" -m weirpool "$@"\n'


def candidates(line: str) -> list[str]:
    """Return what fish would offer, without the help."""
    asked = {"_WEIRPOOL_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    environment = os.environ | asked | {"_TYPER_COMPLETE_ARGS": f"weirpool {line}"}
    command = [sys.executable, "-m", "weirpool"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert result.stderr == ""
    return [found.partition("\t")[0] for found in result.stdout.splitlines() if found]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("ca", ["call"]),
        ("--ver", ["--version"]),
        ("journal t", ["tail", "trim"]),
        ("journal tail --fo", ["--format", "--follow"]),
        ("call rsocket+tcp://localhost:7878 echo --format ", ["text", "json", "hex", "raw", "none"]),
        ("call --trace u", ["unsampled", "undecided"]),
        ("decode --dialect reactivesocket", ["reactivesocket-0.2", "reactivesocket-0.0"]),
        ("decode --dialect r", list(VERSIONS)),
        ("completion ", list(SHELLS)),
        # Without known values, the shell may offer files.
        ("call --cafile ", []),
    ],
)
def test_candidates(typed: str, expected: list[str]) -> None:
    assert candidates(typed) == expected


def test_all_verbs_are_offered() -> None:
    assert sorted(candidates("")) == sorted(VERBS)


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_call_the_program(weirpool: Weirpool, shell: str) -> None:
    result = weirpool("completion", shell)
    assert (result.code, result.err) == (0, "")
    assert "_WEIRPOOL_COMPLETE" in result.out.decode()


def test_unknown_shell_is_wrong_use(weirpool: Weirpool) -> None:
    result = weirpool("completion", "tcsh")
    assert result.code == 2
    assert "bash, zsh, fish" in result.err
    assert_one_line(result)


@pytest.mark.parametrize(
    ("words", "current", "expected"),
    [
        (["weirpool", "ca"], 1, (["weirpool", "ca"], 1)),
        (
            ["weirpool", "call", "rsocket+tcp", ":", "//a", ":", "1", "ec"],
            7,
            (["weirpool", "call", "rsocket+tcp://a:1", "ec"], 3),
        ),
        (["weirpool", "call", "x", "--format", "=", "j"], 5, (["weirpool", "call", "x", "--format=j"], 3)),
        (["weirpool", "call", "x", "--format", "="], 4, (["weirpool", "call", "x", "--format="], 3)),
        (["weirpool", "call", ""], 2, (["weirpool", "call", ""], 2)),
        (["weirpool", "call", "@", "d"], 3, (["weirpool", "call", "@d"], 2)),
        (["weirpool", "call", "@", "d", "q"], 4, (["weirpool", "call", "@d", "q"], 3)),
    ],
)
def test_words_that_bash_divides_are_rejoined(words: list[str], current: int, expected: tuple[list[str], int]) -> None:
    assert rejoined(words, current) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shell_understands_its_script(weirpool: Weirpool, shell: str, tmp_path: Path) -> None:
    need(shell)
    (tmp_path / "script").write_bytes(weirpool("completion", shell).out)
    arguments = [shell, "-n", str(tmp_path / "script")]
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS)
    assert (result.returncode, result.stderr) == (0, "")


def test_bash_completes_words(tmp_path: Path) -> None:
    need("bash")
    program = tmp_path / "weirpool"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    # When the user presses the key, bash sets these variables and calls the registered function.
    script = """
        PATH="$1:$PATH"; eval "$(weirpool completion bash)"; complete -p weirpool
        press() {
            COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
            _weirpool_completion weirpool; echo "${COMPREPLY[*]}"
        }
        press weirpool ca
        press weirpool call rsocket+tcp : //here : 1 "'a route'" --set
        press weirpool call rsocket+tcp : //here : 1 "'a route'" --format = j
    """
    arguments = ["bash", "--norc", "-c", script, "bash", str(tmp_path)]
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "complete -o default -F _weirpool_completion weirpool",
        "call",
        "--setup --setup-metadata --setup-auth --set",
        "json",
    ]


def test_fish_completes_words(tmp_path: Path) -> None:
    need("fish")
    (tmp_path / "weirpool").write_text(PROGRAM)
    (tmp_path / "weirpool").chmod(0o755)
    script = "weirpool completion fish | source; complete --do-complete 'weirpool call rsocket+tcp://a:1 x --format h'"
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    result = subprocess.run(
        ["fish", "--command", script], env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert (result.stdout.split(), result.stderr) == (["hex"], "")


def test_contexts_are_offered_while_one_is_current(weirpool: Weirpool) -> None:
    for name in ("dev", "prod"):
        weirpool("context", "add", name, "rsocket+tcp://127.0.0.1:1")
    assert candidates("call @") == ["@dev", "@prod"]
    assert candidates("call @p") == ["@prod"]
    assert candidates("context use ") == ["dev", "prod"]
