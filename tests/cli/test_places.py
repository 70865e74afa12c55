from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from weirpool.cli.places import command, configuration


def test_configuration_is_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert configuration("options.toml") == tmp_path / "weirpool" / "options.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert configuration("options.toml") == Path.home() / ".config" / "weirpool" / "options.toml"


@pytest.mark.parametrize(
    ("script", "found", "expected"),
    [
        (".venv/bin/weirpool", None, ".venv/bin/weirpool"),
        ("a b/weirpool", None, "'a b/weirpool'"),
        (".venv/bin/weirpool", "/usr/bin/weirpool", "weirpool"),
        ("weirpool/__main__.py", None, "weirpool"),
    ],
)
def test_commands_to_copy_begin_with_a_word_that_the_shell_finds(
    script: str, found: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [script, "demo"])
    monkeypatch.setattr(shutil, "which", lambda name: found)
    assert command() == expected
