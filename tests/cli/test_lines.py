from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from penstock.cli.lines import lines_of
from penstock.errors import LocalError
from tests.cli.conftest import SECONDS, command


def test_argument_and_file(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"a\r\n\nb")
    assert lines_of("a\n\nb") == lines_of(f"@{file}") == [b"a", b"", b"b"]


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="missing"):
        lines_of(f"@{tmp_path}/missing")


def test_standard_input_travels_line_by_line_while_it_is_open(server: str) -> None:
    arguments = command("channel", server, "double", "-")
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None and process.stdout is not None
        for number in range(3):
            process.stdin.write(b"%d\n" % number)
            assert process.stdout.readline() == b"%d\n" % (2 * number)
        # The last line needs no end.
        process.stdin.write(b"21")
        process.stdin.close()
        assert process.stdout.readline() == b"42\n"
        assert process.wait(SECONDS) == 0


def test_open_standard_input_does_not_hold_up_the_end(server: str) -> None:
    arguments = command("channel", server, "double", "-", "--take", "1")
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"1\n")
        assert process.stdout.readline() == b"2\n"
        assert process.wait(SECONDS) == 0
