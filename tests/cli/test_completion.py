from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.completion import SCRIPTS, candidates
from penstock.cli.parser import VERBS
from penstock.protocols import VERSIONS
from tests.cli.conftest import SECONDS, Penstock, assert_one_line


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("ca", ["call"]),
        ("--v", ["--version"]),
        ("nothing --", []),
        ("journal t", ["tail", "trim"]),
        ("journal tail --fo", ["--format", "--follow"]),
        ("call --setup-", ["--setup-metadata", "--setup-auth"]),
        ("call rsocket+tcp://localhost:7878 echo --format ", ["text", "json", "hex", "raw", "none"]),
        ("call --trace u", ["unsampled", "undecided"]),
        ("decode --dialect reactivesocket", ["reactivesocket-0.2", "reactivesocket-0.0"]),
        ("decode --dialect r", list(VERSIONS)),
        ("decode --framing u", ["u24", "u32-inclusive", "u32"]),
        ("completion ", ["bash", "zsh", "fish"]),
        # Without known values or for arguments, the shell may offer files.
        ("call --cafile ", []),
        ("call ", []),
        ("call --debug ", []),
    ],
)
def test_candidates(typed: str, expected: list[str]) -> None:
    assert candidates(typed.split(" ")) == expected


def test_all_verbs_and_options_are_offered() -> None:
    assert sorted(candidates([""])) == sorted(VERBS)
    offered = candidates(["fire", "-"])
    assert {"--data", "-d", "--auth", "--cert"} <= set(offered)
    assert candidates(["fire", "--he"]) == ["--header", "--help"]


@pytest.mark.parametrize("shell", SCRIPTS)
def test_scripts_call_the_program(penstock: Penstock, shell: str) -> None:
    result = penstock("completion", shell)
    assert (result.code, result.out.decode(), result.err) == (0, SCRIPTS[shell], "")
    assert "penstock completion words -- " in result.out.decode()


def test_words_may_look_like_options(penstock: Penstock) -> None:
    assert penstock("completion", "words", "--", "call", "--ti").lines == [b"--timeout"]


def test_unknown_shell_is_wrong_use(penstock: Penstock) -> None:
    result = penstock("completion", "tcsh")
    assert result.code == 2
    assert "bash, zsh, fish" in result.err
    assert_one_line(result)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shell_understands_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    (tmp_path / "script").write_text(SCRIPTS[shell])
    arguments = [shell, "-n", str(tmp_path / "script")]
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_words(tmp_path: Path) -> None:
    program = tmp_path / "penstock"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m penstock "$@"\n')
    program.chmod(0o755)
    # When the user presses the key, bash sets these variables and calls the registered function.
    script = """
        PATH="$1:$PATH"; eval "$(penstock completion bash)"; complete -p penstock
        press() { COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=(); _penstock; echo "${COMPREPLY[*]}"; }
        press penstock ca
        press penstock call rsocket+tcp://here:1 'a route' --set
        press penstock call ''
    """
    arguments = ["bash", "--norc", "-c", script, "bash", str(tmp_path)]
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "complete -o default -F _penstock penstock",
        "call",
        "--setup --setup-metadata --setup-auth --set",
        "",
    ]
