from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.connect_options import ConnectOptions
from penstock.settings import Settings
from tests.cli.conftest import Penstock, assert_one_line


def test_resuming_is_a_setting() -> None:
    settings = ConnectOptions(resume=5).settings("rsocket+tcp://a:1")
    assert settings == Settings(resume=True, resume_timeout=5)


def test_set_up_says_what_is_given(penstock: Penstock, seen: str, tmp_path: Path) -> None:
    file = tmp_path / "metadata"
    file.write_bytes(b"beside")
    options = ("--setup", "who I am", "--setup-metadata", f"@{file}", "--setup-auth", "simple:ada:lovelace")
    (said,) = penstock("call", seen, "setup", *options).objects
    assert (said["data"], said["auth"]) == ("who I am", ["Simple", "ada", "lovelace"])
    assert said["entries"]["application/octet-stream"] == "beside"


def test_credentials_of_the_set_up_may_be_in_the_environment(
    penstock: Penstock, seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SETUP_AUTH", "bearer:abc")
    (said,) = penstock("call", seen, "setup").objects
    assert said["auth"] == ["Bearer", "", "abc"]


def test_credentials_need_composite_metadata(penstock: Penstock, seen: str) -> None:
    result = penstock("call", seen, "setup", "--setup-auth", "bearer:geheim", "--metadata-mime", "text/plain")
    assert result.code == 2
    assert "composite" in result.err and "geheim" not in result.err
    assert_one_line(result)


def test_resumable_session_works(penstock: Penstock, seen: str) -> None:
    result = penstock("call", seen, "seen", "--resume", "60", "--debug")
    assert result.code == 0
    assert "token=hidden(16)" in result.err


def test_draft_cannot_resume(penstock: Penstock, seen: str) -> None:
    result = penstock("call", seen.replace("rsocket+", "reactivesocket-0.0+"), "seen", "--resume", "60")
    assert result.code == 2
    assert_one_line(result)
