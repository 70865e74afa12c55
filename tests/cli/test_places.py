from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from penstock.cli.places import command, configuration


def test_configuration_is_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert configuration("options.toml") == tmp_path / "penstock" / "options.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert configuration("options.toml") == Path.home() / ".config" / "penstock" / "options.toml"


@pytest.mark.parametrize(
    ("script", "found", "expected"),
    [
        (".venv/bin/penstock", None, ".venv/bin/penstock"),
        ("a b/penstock", None, "'a b/penstock'"),
        (".venv/bin/penstock", "/usr/bin/penstock", "penstock"),
        ("penstock/__main__.py", None, "penstock"),
    ],
)
def test_commands_to_copy_begin_with_a_word_that_the_shell_finds(
    script: str, found: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [script, "demo"])
    monkeypatch.setattr(shutil, "which", lambda name: found)
    assert command() == expected
