from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Weirpool, assert_one_line


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the user's options file, which does not exist yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "weirpool" / "options.toml"
    path.parent.mkdir()
    return path


def test_options_of_all_verbs_and_of_one(weirpool: Weirpool, seen: str, server: str, tmp_path: Path) -> None:
    file = tmp_path / "options.toml"
    file.write_text(
        'auth = "bearer:abc"\ndata-mime = "text/csv"\nentry = ["my/own=1", "my/other=2"]\nbudget = "1MiB"\n'
        "[stream]\ntake = 2\njson = true\n[call]\nformat = 'hex'\n"
    )
    assert bytes.fromhex(weirpool("call", seen, "seen", "--options", str(file)).out.decode()).startswith(b"{")
    (said,) = weirpool("call", seen, "seen", "--options", str(file), "--format", "text").objects
    assert said["auth"] == ["Bearer", "", "abc"]
    assert said["entries"]["my/own"] == "1" and said["entries"]["my/other"] == "2"
    stream = weirpool("stream", server, "count", "-d", "9", "--options", str(file))
    assert [item["data"] for item in stream.objects] == ["0", "1"]
    # The command line takes precedence, in any order.
    assert len(weirpool("stream", "--take", "3", server, "count", "-d", "9", "--options", str(file)).lines) == 3


def test_users_own_file(weirpool: Weirpool, server: str, home: Path, tmp_path: Path) -> None:
    home.write_text("take = 1\n")
    assert len(weirpool("stream", server, "count", "-d", "9").lines) == 1
    # A named file is read instead, and an empty name means no file.
    (tmp_path / "other.toml").write_text("credit = 3\n")
    for other in (str(tmp_path / "other.toml"), ""):
        assert len(weirpool("stream", server, "count", "-d", "9", "--options", other).lines) == 9
    assert weirpool("stream", "--help").code == 0


def test_environment_takes_precedence_over_a_file(
    weirpool: Weirpool, seen: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write_text('auth = "bearer:file"\n')
    assert weirpool("call", seen, "seen").objects[0]["auth"][2] == "file"
    monkeypatch.setenv("WEIRPOOL_AUTH", "bearer:environment")
    assert weirpool("call", seen, "seen").objects[0]["auth"][2] == "environment"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("credti = 1\n", "did you mean 'credit'?"),
        ("[stream]\nrepeat = 1\n", "stream does not have"),
        ("[streem]\ntake = 1\n", "no verb of that name"),
        ("[decode]\ndialect = 'rsocket-1.0'\n", "no verb of that name"),
        ("take = [1]\n", "take must be one value"),
        ("entry = 'a/b=1'\n", "entry must be a list"),
        ("take = 'many'\n", "--take"),
        ("take = 0\n", "--take"),
        ("take", "not valid TOML"),
        ("options = 'other.toml'\n", "no verb has"),
    ],
)
def test_invalid_file_is_an_error(weirpool: Weirpool, server: str, home: Path, text: str, part: str) -> None:
    home.write_text(text)
    result = weirpool("stream", server, "count", "-d", "9")
    assert result.code == 2
    assert part in result.err
    assert_one_line(result)


def test_missing_file_is_wrong_use(weirpool: Weirpool, server: str) -> None:
    result = weirpool("call", server, "echo", "--options", "/no/such/file")
    assert result.code == 2
    assert "/no/such/file" in result.err
    assert_one_line(result)
