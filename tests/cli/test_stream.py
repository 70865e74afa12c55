from __future__ import annotations

import subprocess

import pytest

from tests.cli.conftest import SECONDS, Penstock, assert_one_line, command


def test_items_are_printed_a_line_each(penstock: Penstock, server: str) -> None:
    result = penstock("stream", server, "count", "-d", "3")
    assert (result.code, result.lines) == (0, [b"0", b"1", b"2"])


@pytest.mark.parametrize("credit", ["1", "2", "1000"])
def test_take_stops_early_with_any_credit(penstock: Penstock, server: str, credit: str) -> None:
    result = penstock("stream", server, "count", "-d", "1000000", "--take", "5", "--credit", credit)
    assert (result.code, result.lines) == (0, [b"0", b"1", b"2", b"3", b"4"])


def test_json_is_one_object_an_item(penstock: Penstock, server: str) -> None:
    result = penstock("stream", server, "blob", "-d", "2,1", "--json")
    assert result.objects == [{"data": "\0", "metadata": None}] * 2


def test_failing_handler_is_exit_code_1(penstock: Penstock, server: str) -> None:
    result = penstock("stream", server, "count", "-d", "no number")
    assert result.code == 1
    assert_one_line(result)


@pytest.mark.parametrize("option", ["--take", "--credit"])
def test_zero_items_are_wrong_use(penstock: Penstock, server: str, option: str) -> None:
    result = penstock("stream", server, "count", option, "0")
    assert result.code == 2
    assert option in result.err
    assert_one_line(result)


def test_closed_pipe_is_quiet(server: str) -> None:
    arguments = command("stream", server, "count", "-d", "1000000")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.wait(SECONDS) == 0
        assert process.stderr.read() == b""
