from __future__ import annotations

import io
import re
import sys

import pytest

from weirpool.cli.colors import colored
from weirpool.payload import Payload


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal with colors."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def written(data: bytes) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", Terminal())
        return colored(lambda payload: payload.data + b"\n")(Payload(data))


def plain(data: bytes) -> str:
    """Return what remains without the colors."""
    return re.sub(r"\x1b\[[0-9;]*m", "", data.decode())


@pytest.mark.parametrize("line", [b'{"a": 1, "b": [true, null, "x"]}', b"[1,2]", b'{"long": "' + b"x" * 500 + b'"}'])
def test_json_is_colored_and_unchanged(line: bytes) -> None:
    out = written(line)
    assert b"\x1b[" in out
    assert plain(out) == line.decode() + "\n"


@pytest.mark.parametrize("line", [b"hello", b"42", b"{not json}", b"[" * 100_000, b"[bold]x[/bold]"])
def test_other_text_is_left_alone(line: bytes) -> None:
    assert written(line) == line + b"\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_user_may_want_none(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert written(b"{}") == b"{}\n"
