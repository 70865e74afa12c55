from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line, command

QUICK = ("--count", "20", "--warm-up", "0")


def test_sweep_prints_a_row_for_each_number_in_flight(weirpool: Weirpool, server: str) -> None:
    result = weirpool("bench", server, "echo", "-d", "hello", "--in-flight", "1,4", "--connections", "2", *QUICK)
    assert result.code == 0, result.err
    head, *rows = result.out.decode().splitlines()
    assert head.split() == ["in", "flight", "req/s", "data/s", "p50", "p90", "p99", "p99.9", "max", "failed"]
    assert [row.split()[0] for row in rows] == ["1", "4"]
    assert all(len(line) <= 80 for line in (head, *rows))


@pytest.mark.parametrize(
    ("kind", "route", "data"),
    [("stream", "count", "5"), ("upload", "sum", "1"), ("channel", "double", "2"), ("fire", "log", "x")],
)
def test_every_kind_has_results_as_json(weirpool: Weirpool, server: str, kind: str, route: str, data: str) -> None:
    result = weirpool("bench", server, route, "-d", data, "--kind", kind, "--items", "3", "--json", *QUICK)
    [found] = result.objects[0]["rounds"]
    assert (result.code, found["requests"], found["failed"], found["complete"]) == (0, 20, 0, True)
    assert found["items"] == 20 * {"stream": 5, "upload": 3, "channel": 3 + 4, "fire": 0}[kind]


def test_failed_requests_are_exit_code_1(weirpool: Weirpool, server: str) -> None:
    result = weirpool("bench", server, "fail", *QUICK)
    assert result.code == 1
    assert result.lines[-1] == b"20 failed with 0x301: boom"


def test_report_is_written(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = weirpool("bench", server, "echo", "--html", str(page), *QUICK)
    assert (result.code, result.err) == (0, f"report in {page}\n")
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    "options",
    [
        ("--in-flight", "0"),
        ("--in-flight", "1,x"),
        ("--kind", "dance"),
        ("--html", "/no/such/folder/report.html"),
        ("--rate", "0"),
        ("--set", "credit=x"),
    ],
)
def test_wrong_option_is_exit_code_2(weirpool: Weirpool, server: str, options: tuple[str, str]) -> None:
    result = weirpool("bench", server, "echo", *QUICK, *options)
    assert result.code == 2
    assert_one_line(result)


def test_no_server_is_exit_code_3(weirpool: Weirpool) -> None:
    result = weirpool("bench", "rsocket+tcp://127.0.0.1:1", "echo", *QUICK)
    assert result.code == 3
    assert_one_line(result)


def test_interrupt_prints_what_was_measured(server: str) -> None:
    arguments = command("bench", server, "echo", "--duration", "600", "--warm-up", "0", "--json", "--debug")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            # The answer to the second call: the first has been counted.
            while not re.search(r"rcvd PAYLOAD stream=3 ", process.stderr.readline()):
                pass
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    [found] = json.loads(out)["rounds"]
    assert process.returncode == 130
    assert found["requests"] >= 1
    assert not found["complete"]
