from __future__ import annotations

from pathlib import Path

import pytest

from weirpool import LocalError
from weirpool.access.references import referenced, resolved


def test_a_secret_is_itself_or_in_a_file_or_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "@not read again")
    (tmp_path / "token").write_text("abc\n")
    assert resolved("plain") == "plain" and referenced("plain") is None
    assert resolved("env:SECRET") == "@not read again"
    assert resolved(f"@{tmp_path / 'token'}") == "abc"


def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    (tmp_path / "broken").write_bytes(b"\xff")
    for text, part in (("env:NOWHERE", "'NOWHERE'"), ("@/no/such", "/no/such"), (f"@{tmp_path}/broken", "UTF-8")):
        with pytest.raises(LocalError, match=part):
            referenced(text)
