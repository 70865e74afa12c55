from __future__ import annotations

import json
import logging
import os
import sys

from hypothesis import given
from hypothesis import strategies as st

from weirpool.observe.logs import JsonLines, TextLines


def record(message: str, *arguments: object, **options: object) -> logging.LogRecord:
    made = logging.LogRecord("weirpool.feeds", logging.WARNING, "feed.py", 1, message, arguments, None)
    vars(made).update(options)
    return made


def test_record_is_an_object_with_what_was_passed() -> None:
    line = JsonLines().format(record("%s of %d", "1", 2, created=0.0, feed="flights", error=None, odd={1}))
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "level": "warning",
        "logger": "weirpool.feeds",
        "pid": os.getpid(),
        "message": "1 of 2",
        "feed": "flights",
        "error": None,
        "odd": "{1}",
    }


def test_text_of_peers_cannot_control_a_terminal() -> None:
    assert TextLines("weirpool: %(message)s").format(record("a\x1b[2Jb")) == "weirpool: a\\x1b[2Jb"


def test_text_of_peers_makes_no_record_of_its_own() -> None:
    assert TextLines("%(message)s").format(record("a\nERROR forged")) == "a\\nERROR forged"
    try:
        raise ValueError("why\nERROR forged\x1b")
    except ValueError:
        made = record("failed", exc_info=sys.exc_info())
    first, *rest = TextLines("%(message)s").format(made).split("\n")
    assert first == "failed" and all(line.startswith("    ") for line in rest)
    assert rest[-1] == "    ERROR forged\\x1b"


def test_exception_has_its_traceback() -> None:
    try:
        raise ValueError("why")
    except ValueError:
        made = record("failed", exc_info=sys.exc_info())
    assert json.loads(JsonLines().format(made))["error"].endswith("ValueError: why")


@given(st.text())
def test_any_text_is_one_line(text: str) -> None:
    line = JsonLines().format(record("%s", text))
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    assert json.loads(line)["message"] == text
