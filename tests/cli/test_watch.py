from __future__ import annotations

import io
import os
import pty
import select
import subprocess
from collections import deque

import pytest
from rich.console import Console

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line, command
from weirpool.cli import watch
from weirpool.cli.watch import Watch, sparkline


def shown(seen: Watch, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as capture:
        console.print(seen)
    return capture.get()


def test_objects_have_columns_and_trends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(watch, "monotonic", lambda: now[0])
    seen = Watch("ticks", 3)
    for number in range(5):
        seen.add(b'{"symbol": "ACME", "price": %d, "late": %s}' % (number, b"true" if number else b"null"))
        now[0] += 1
    text = shown(seen)
    assert "ticks: 5 items, 1.0/s" in text
    assert "symbol" in text and "price" in text and "▁▂▄▆█" in text
    # The newest items, as many as there is room for.
    assert [line.split()[3] for line in text.splitlines() if "ACME" in line] == ["2", "3", "4"]


def test_other_items_are_text() -> None:
    seen = Watch("log", 5)
    for data in (b"hello\x1b[2J", b"\xff", b"[1, 2]", b"[" * 100_000, b"x" * 500):
        seen.add(data)
    text = shown(seen)
    assert "hello\\x1b[2J" in text and "[1, 2]" in text and "x…" in text
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= 80


def test_hostile_fields_are_bounded() -> None:
    seen = Watch("many", 1_000)
    for number in range(2_000):
        seen.add(b'{"f%d": %d}' % (number, number))
    assert len(seen._rows) <= watch.MAX_ROWS and len(seen._trends) <= watch.MAX_COLUMNS
    assert "2,000 items" in shown(seen, 200)


def test_empty_stream_is_shown() -> None:
    assert "none: 0 items" in shown(Watch("none", 5))


@pytest.mark.parametrize(
    ("values", "expected"), [([], ""), ([1], "▁"), ([5, 5], "▁▁"), ([0, 7], "▁█"), ([-1.5, 0, 1.5], "▁▄█")]
)
def test_sparkline_spans_the_values(values: list[float], expected: str) -> None:
    assert sparkline(deque(values)) == expected


def test_without_a_terminal_it_is_refused(weirpool: Weirpool, server: str) -> None:
    result = weirpool("stream", server, "count", "-d", "3", "--watch")
    assert result.code == 2 and "--watch needs a terminal" in result.err
    assert_one_line(result)


def test_stream_is_shown_on_a_terminal(server: str) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    arguments = command("stream", server, "count", "-d", "1000", "--watch")
    with subprocess.Popen(arguments, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while select.select([ours], [], [], SECONDS)[0]:
            try:
                seen += os.read(ours, 65_536)
            except OSError:
                break
        assert process.wait(SECONDS) == 0
    os.close(ours)
    assert b"count: 1,000 items" in seen and b"999" in seen
