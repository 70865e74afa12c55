from __future__ import annotations

import io
import logging
import sys

import pytest

from weirpool.cli.progress import StandardError, progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_each_line_is_printed_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line() as show:
        show("one")
        show("two")
    assert capsys.readouterr().err == "one\ntwo\n"


def test_terminal_shows_one_line_below_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    handler = StandardError()
    with progress_line() as show:
        show("7 rows\x1b[2J")
        handler.emit(logging.LogRecord("x", logging.WARNING, "", 0, "a warning", (), None))
    out = terminal.getvalue()
    assert "a warning" in out and "7 rows\\x1b[2J" in out and "\x1b[2J" not in out
    # The line is overwritten, not repeated.
    assert "\x1b[2K" in out
