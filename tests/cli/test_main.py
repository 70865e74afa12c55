from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line, command
from weirpool.cli import parser
from weirpool.cli.main import run
from weirpool.errors import ApplicationError


def failing(error: BaseException) -> object:
    def invoke(arguments: list[str]) -> int:
        raise error

    return invoke


def test_missing_package_is_one_line(weirpool: Weirpool, monkeypatch: pytest.MonkeyPatch) -> None:
    error = ModuleNotFoundError("No module named 'flights'", name="flights")
    monkeypatch.setattr(parser, "invoke", failing(error))
    result = weirpool("doctor")
    assert result.code == 2
    assert_one_line(result)
    assert "No module named 'flights'" in result.err


@pytest.mark.parametrize(
    "start", ["from weirpool.cli.main import run; run()", "runpy.run_module('weirpool', None, '__main__')"]
)
@pytest.mark.parametrize("blocked", [("typer",), ("rich",), ("msgspec",), ("msgspec", "packaging", "rich", "typer")])
def test_without_a_required_package_there_is_one_line(start: str, blocked: tuple[str, ...]) -> None:
    # As after `pip install --no-deps`: the import fails in the whole process.
    code = (
        "import runpy, sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {blocked}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        f"{start}\n"
    )
    result = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=SECONDS)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("weirpool: the package ") and result.stderr.count("\n") == 1
    assert any(f"the package {name} is missing; run: pip install " in result.stderr for name in blocked)


@pytest.mark.parametrize(
    "text",
    [
        "No encoder for example.Quote, current value",
        "x: Cannot decode to [example.Query]y",
        "unknown data MIME type 'application/octet-stream'; use one",
    ],
)
def test_errors_about_encodings_have_a_hint(weirpool: Weirpool, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(parser, "invoke", failing(ApplicationError(message=text)))
    result = weirpool("doctor")
    assert result.code == 1
    assert result.err.startswith(f"weirpool: [0x201] {text}; ") and "try --data-mime application/json\n" in result.err


@pytest.mark.parametrize("argument", ["\udcff", "rsocket+tcp://\udcff:1"])
def test_argument_that_is_not_utf8_is_one_line(weirpool: Weirpool, server: str, argument: str) -> None:
    result = weirpool("call", *((argument, "echo") if "+" in argument else (server, argument)))
    assert result.code in (2, 3)
    assert_one_line(result)
    assert "not valid UTF-8" in result.err or "not a valid name" in result.err


def test_output_in_an_encoding_that_lacks_a_character_is_one_line(server: str) -> None:
    code = "import sys; sys.stdout.reconfigure(encoding='ascii'); from weirpool.cli import main, parser; "
    code += "parser.invoke = lambda _: print('é'); main.run()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "characters that ascii does not have; set PYTHONIOENCODING=utf-8" in result.stderr


def test_interrupt_is_130(weirpool: Weirpool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "invoke", failing(KeyboardInterrupt()))
    result = weirpool("doctor")
    assert (result.code, result.err) == (130, "")


def test_unexpected_error_is_not_hidden(weirpool: Weirpool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "invoke", failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        run(["doctor"])


def test_closed_pipe_is_quiet_at_exit_too() -> None:
    # Short output stays in the buffer until the end, when the reader has closed the pipe.
    code = "import sys; sys.stdin.read(); from weirpool.cli.main import run; run(['decode', '000000012400'])"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        assert process.wait(SECONDS) == 0
        assert process.stderr.read() == b""


def test_help_is_quiet_when_its_reader_has_closed_the_pipe() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(command("--help"), stdout=writer, stderr=subprocess.PIPE, timeout=SECONDS)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("closed", "expected"),
    [("<&-", (0, "\n", "")), (">&-", (0, "", "")), ("2>&-", (0, "hi\n", "")), ("<&- >&- 2>&-", (0, "", ""))],
)
def test_standard_streams_may_be_closed(server: str, closed: str, expected: tuple[int, str, str]) -> None:
    # As with some schedulers and daemons.
    line = f'exec "$@" {closed}'
    call = command("call", server, "echo", "-d", "-" if closed == "<&-" else "hi")
    result = subprocess.run(["sh", "-c", line, "sh", *call], capture_output=True, text=True, timeout=SECONDS)
    assert (result.returncode, result.stdout, result.stderr) == expected


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full")
def test_output_that_cannot_be_written_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        arguments = command("decode", "000000012400")
        result = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    assert result.returncode == 1
    assert "No space left" in result.stderr
    assert result.stderr.count("\n") == 1
