from __future__ import annotations

import pytest

from penstock.cli.complaints import complain


def test_complaint_is_one_safe_line(capsys: pytest.CaptureFixture[str]) -> None:
    complain("it says\nno\x1b[31m")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "penstock: it says no\\x1b[31m\n"
