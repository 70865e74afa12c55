from __future__ import annotations

import asyncio
import subprocess
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import INTEROP, SECONDS, SEEN, Weirpool, assert_one_line, command, serving


def test_answer_is_printed(weirpool: Weirpool, server: str) -> None:
    result = weirpool("call", server, "echo", "-d", "hello")
    assert (result.code, result.out, result.err) == (0, b"hello\n", "")


def test_data_from_a_file_and_from_standard_input(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"\x00\xff from a file")
    assert weirpool("call", server, "echo", "-d", f"@{file}").out == b"\x00\xff from a file\n"
    assert weirpool("call", server, "echo", "-d", "-", stdin=b"\xfe from a pipe").out == b"\xfe from a pipe\n"


def test_metadata_is_sent_in_addition_to_the_route(weirpool: Weirpool, server: str) -> None:
    (answer,) = weirpool("call", server, "echo", "--metadata", "beside", "--json").objects
    assert bytes.fromhex(answer["metadata_hex"]).endswith(b"beside")


def test_application_error_is_exit_code_1(weirpool: Weirpool, server: str) -> None:
    result = weirpool("call", server, "fail")
    assert (result.code, result.out, result.err) == (1, b"", "weirpool: [0x301] boom\n")


def test_unknown_route_is_exit_code_1(weirpool: Weirpool, server: str) -> None:
    result = weirpool("call", server, "nowhere")
    assert result.code == 1
    assert "nowhere" in result.err
    assert_one_line(result)


def test_failed_connection_is_exit_code_3(weirpool: Weirpool, tmp_path: Path) -> None:
    result = weirpool("call", f"rsocket+unix://{tmp_path}/nobody", "echo")
    assert result.code == 3
    assert_one_line(result)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("rsocket+tcq://127.0.0.1:1", "echo"), "did you mean 'tcp'?"),
        (("rsocket+tcp://127.0.0.1:1", "echo", "-d", "@/no/such/file"), "'/no/such/file'"),
        (("rsocket+tcp://127.0.0.1:1", "echo", "--cafile", "/no/such/file"), "'/no/such/file'"),
        (("rsocket+tcp://127.0.0.1:1", "echo", "--insecure"), "not encrypted"),
        (("rsocket+tcp://127.0.0.1:1",), "weirpool call --help"),
    ],
)
def test_wrong_use_is_exit_code_2(weirpool: Weirpool, arguments: tuple[str, ...], part: str) -> None:
    result = weirpool("call", *arguments)
    assert result.code == 2
    assert part in result.err
    assert_one_line(result)


def test_timeout_is_exit_code_1(weirpool: Weirpool, server: str) -> None:
    result = weirpool("call", server, "slow", "-d", "60000", "--timeout", "0.05")
    assert result.code == 1
    assert "--timeout" in result.err
    assert_one_line(result)


def test_items_are_printed_one_per_line(weirpool: Weirpool, server: str) -> None:
    result = weirpool("stream", server, "count", "-d", "3")
    assert (result.code, result.lines) == (0, [b"0", b"1", b"2"])


@pytest.mark.parametrize("credit", ["1", "2", "1000"])
def test_take_stops_early_with_any_credit(weirpool: Weirpool, server: str, credit: str) -> None:
    result = weirpool("stream", server, "count", "-d", "1000000", "--take", "5", "--credit", credit)
    assert (result.code, result.lines) == (0, [b"0", b"1", b"2", b"3", b"4"])


def test_json_is_one_object_per_item(weirpool: Weirpool, server: str) -> None:
    result = weirpool("stream", server, "blob", "-d", "2,1", "--json")
    assert result.objects == [{"data": "\0", "metadata": None}] * 2


def test_stream_of_a_failing_handler_is_exit_code_1(weirpool: Weirpool, server: str) -> None:
    result = weirpool("stream", server, "count", "-d", "no number")
    assert result.code == 1
    assert_one_line(result)


@pytest.mark.parametrize("option", ["--take", "--credit"])
def test_zero_items_are_wrong_use(weirpool: Weirpool, server: str, option: str) -> None:
    result = weirpool("stream", server, "count", option, "0")
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


def test_fired_item_arrives(weirpool: Weirpool) -> None:
    with serving(f"{INTEROP}:service", "rsocket+tcp://127.0.0.1:0") as (process, urls):
        result = weirpool("fire", urls[0], "log", "-d", "hello")
        assert (result.code, result.out, result.err) == (0, b"", "")
        assert process.stdout is not None
        assert process.stdout.readline() == "hello\n"


def test_fire_to_wrong_url_is_exit_code_2(weirpool: Weirpool) -> None:
    result = weirpool("fire", "localhost:7878", "log")
    assert result.code == 2
    assert_one_line(result)


@pytest.mark.parametrize("items", ["1\n2\n3", "-"])
def test_lines_are_items(weirpool: Weirpool, server: str, items: str) -> None:
    result = weirpool("upload", server, "sum", items, stdin=b"1\n2\r\n3\n")
    assert (result.code, result.out) == (0, b"6\n")


def test_items_from_a_file_follow_the_data(weirpool: Weirpool, server: str, tmp_path: Path) -> None:
    file = tmp_path / "items"
    file.write_text("".join(f"{number}\n" for number in range(1000)))
    result = weirpool("upload", server, "sum", f"@{file}", "-d", "500", "--json")
    assert result.objects == [{"data": "500000", "metadata": None}]


def test_upload_to_a_failing_handler_is_exit_code_1(weirpool: Weirpool, server: str) -> None:
    result = weirpool("upload", server, "sum", "no number")
    assert result.code == 1
    assert_one_line(result)


def test_items_go_both_ways(weirpool: Weirpool, server: str) -> None:
    result = weirpool("channel", server, "double", "-", stdin=b"1\n2\n3\n")
    assert (result.code, result.lines) == (0, [b"2", b"4", b"6"])


def test_data_is_the_first_item(weirpool: Weirpool, server: str) -> None:
    assert weirpool("channel", server, "double", "2", "-d", "1").lines == [b"2", b"4"]


def test_many_items_under_little_credit(weirpool: Weirpool, server: str) -> None:
    given = b"".join(b"%d\n" % number for number in range(10_000))
    result = weirpool("channel", server, "double", "-", "--credit", "2", stdin=given)
    assert [int(line) for line in result.lines] == list(range(0, 20_000, 2))


def test_take_stops_a_channel_early(weirpool: Weirpool, server: str) -> None:
    result = weirpool("channel", server, "double", "5\n6\n7", "--take", "2", "--json")
    assert [item["data"] for item in result.objects] == ["10", "12"]


def test_pushed_metadata_arrives(weirpool: Weirpool, tmp_path: Path) -> None:
    file = tmp_path / "metadata"
    file.write_bytes(b"from a file")
    with serving(SEEN, "rsocket+tcp://127.0.0.1:0") as (process, urls):
        assert process.stdout is not None
        assert weirpool("push", urls[0], "late today", "--repeat", "2").code == 0
        assert [process.stdout.readline() for _ in range(2)] == ["pushed late today\n"] * 2
        assert weirpool("push", urls[0], f"@{file}").code == 0
        assert process.stdout.readline() == "pushed from a file\n"


def test_push_of_a_missing_file_is_wrong_use(weirpool: Weirpool, server: str) -> None:
    result = weirpool("push", server, "@/no/such/file")
    assert result.code == 2
    assert_one_line(result)


def test_verbs_pause_between_items(weirpool: Weirpool, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        if threading.current_thread() is not threading.main_thread():
            # A loop of another test's background work.
            await sleep(seconds)
            return
        waited.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    assert weirpool("call", server, "echo", "-d", "x", "--repeat", "3", "--interval", "7").lines == [b"x"] * 3
    assert weirpool("stream", server, "count", "-d", "3", "--interval", "6").lines == [b"0", b"1", b"2"]
    assert weirpool("upload", server, "sum", "1\n2\n3", "--delay", "5").lines == [b"6"]
    assert [seconds for seconds in waited if seconds] == [7, 7, 6, 6, 5, 5]
