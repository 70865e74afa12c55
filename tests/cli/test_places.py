from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.places import configuration


def test_configuration_is_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert configuration("options.toml") == tmp_path / "penstock" / "options.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert configuration("options.toml") == Path.home() / ".config" / "penstock" / "options.toml"
