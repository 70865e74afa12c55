from __future__ import annotations

from pathlib import Path

import pytest

from tests import missing


def test_what_is_missing_is_skipped_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(missing, "REQUIRED", False)
        with pytest.raises(pytest.skip.Exception, match="no zsh and fish here: apt-get install zsh fish"):
            missing.need("zsh", "fish")
        with pytest.raises(pytest.skip.Exception, match="no no_such_module here: pip"):
            missing.need_module("no_such_module.inner")
        patch.setattr(missing, "REQUIRED", True)
        with pytest.raises(pytest.fail.Exception, match=r"zsh.*WEIRPOOL_REQUIRE_TOOLS"):
            missing.need("zsh")


def test_what_is_there_is_no_reason_to_skip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = tmp_path / "zsh"
    command.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing.find("zsh") == str(command)
    assert missing.need("zsh") is None
    assert missing.need_module("tests.missing") is missing


def test_a_module_that_cannot_import_another_is_no_reason_to_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_module.py").write_text("import no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        missing.need_module("broken_module")


def test_summary_names_each_once_and_how_to_get_it() -> None:
    def skipped(reason: str) -> pytest.TestReport:
        return pytest.TestReport("a", ("a", 1, "a"), {}, "skipped", ("a.py", 1, f"Skipped: {reason}"), "setup")

    reasons = ["no zsh here: apt-get install zsh"] * 2 + ["not on Windows"]
    assert missing.summary(map(skipped, reasons)) == [
        "2 tests skipped: no zsh here: apt-get install zsh",
        "1 test skipped: not on Windows",
    ]
