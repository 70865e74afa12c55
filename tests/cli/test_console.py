from __future__ import annotations

import ast
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from tests.logs import kept_logging
from weirpool.cli.console import COLLECTING, complain, note, say, say_json, start_logging
from weirpool.errors import LocalError

SOURCES = sorted((Path(__file__).parents[2] / "src" / "weirpool" / "cli").rglob("*.py"))
HOSTILE = "it says\nno\x1b[31m\t\x7f\x9b\u202e"


def test_complaint_is_one_safe_line(capsys: pytest.CaptureFixture[str]) -> None:
    complain("it says\nno\x1b[31m")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "weirpool: it says no\\x1b[31m\n"


def test_what_is_said_is_one_safe_line(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    note(HOSTILE)
    shown = "it says\\nno\\x1b[31m\\t\\x7f\\x9b\\u202e\n"
    assert capsys.readouterr() == (shown, shown)


def test_json_has_the_same_value(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({HOSTILE: [HOSTILE]})
    out, _ = capsys.readouterr()
    assert json.loads(out) == {HOSTILE: [HOSTILE]}
    assert out.removesuffix("\n").isprintable()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_record_is_one_safe_line(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    with kept_logging():
        logging.getLogger().handlers.clear()
        start_logging(COLLECTING, form)
        logging.getLogger("weirpool.x").warning("%s", HOSTILE)
    _, err = capsys.readouterr()
    assert err.removesuffix("\n").isprintable() and "it says" in err


def test_an_unknown_form_of_logs_is_refused() -> None:
    with pytest.raises(LocalError, match="use text or json"):
        start_logging(COLLECTING, "xml")


@pytest.mark.parametrize("end", ["raise RuntimeError(text)", "logging.getLogger('weirpool.x').warning(text)"])
def test_what_python_prints_is_escaped_too(end: str) -> None:
    program = (
        "import logging\nfrom weirpool.cli import console\nconsole.escape_everything()\n"
        f"text = {HOSTILE.encode('ascii', 'backslashreplace').decode()!r}.encode().decode('unicode_escape')\n{end}"
    )
    err = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr
    assert "no\\x1b[31m" in err
    assert err.replace("\n", "").replace("\t", "").isprintable()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_verb_prints_by_itself(path: Path) -> None:
    if path.name != "console.py":
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        names = [ast.unparse(call.func) for call in calls]
        assert not {"print", "typer.echo", "sys.stderr.write", "logging.basicConfig"} & set(names)
