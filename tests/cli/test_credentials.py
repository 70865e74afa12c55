from __future__ import annotations

from pathlib import Path

import pytest

from weirpool import Bearer, Simple
from weirpool.cli.credentials import credentials
from weirpool.errors import LocalError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("simple:ada:pass:word", Simple("ada", "pass:word")),
        ("simple:ada:", Simple("ada", "")),
        ("bearer:a.b:c", Bearer("a.b:c")),
        ("bearer:env:SECRET", Bearer("from the environment")),
        ("simple:ada:env:SECRET", Simple("ada", "from the environment")),
        ("env:WHOLE", Simple("bob", "@no file")),
    ],
)
def test_forms_of_credentials(text: str, expected: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "from the environment")
    monkeypatch.setenv("WHOLE", "simple:bob:@no file")
    assert credentials(text) == expected


def test_file_may_contain_credentials_or_only_the_secret(tmp_path: Path) -> None:
    token, whole = tmp_path / "token", tmp_path / "whole"
    token.write_text("abc\n")
    whole.write_text("bearer:env:X\n")
    assert credentials(f"bearer:@{token}") == Bearer("abc")
    assert credentials(f"simple:ada:@{token}") == Simple("ada", "abc")
    # The content of a file is not resolved again.
    assert credentials(f"@{whole}") == Bearer("env:X")


@pytest.mark.parametrize("text", ["", "geheim", "simple:geheim", "bearer:", "basic:ada:geheim"])
def test_error_does_not_contain_the_secret(text: str) -> None:
    with pytest.raises(LocalError, match="simple:USER:PASSWORD") as error:
        credentials(text)
    assert "geheim" not in str(error.value)


def test_missing_file_and_variable_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    with pytest.raises(LocalError, match="'NOWHERE'"):
        credentials("env:NOWHERE")
    with pytest.raises(LocalError, match="/no/such/file"):
        credentials("bearer:@/no/such/file")
    broken = tmp_path / "broken"
    broken.write_bytes(b"bearer:\xff")
    with pytest.raises(LocalError, match="not valid UTF-8"):
        credentials(f"@{broken}")
