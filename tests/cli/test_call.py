from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Penstock, assert_one_line


def test_answer_is_printed(penstock: Penstock, server: str) -> None:
    result = penstock("call", server, "echo", "-d", "hello")
    assert (result.code, result.out, result.err) == (0, b"hello\n", "")


def test_data_from_a_file_and_from_standard_input(penstock: Penstock, server: str, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"\x00\xff from a file")
    assert penstock("call", server, "echo", "-d", f"@{file}").out == b"\x00\xff from a file\n"
    assert penstock("call", server, "echo", "-d", "-", stdin=b"\xfe from a pipe").out == b"\xfe from a pipe\n"


def test_metadata_goes_beside_the_route(penstock: Penstock, server: str) -> None:
    (answer,) = penstock("call", server, "echo", "--metadata", "beside", "--json").objects
    assert bytes.fromhex(answer["metadata_hex"]).endswith(b"beside")


def test_application_error_is_exit_code_1(penstock: Penstock, server: str) -> None:
    result = penstock("call", server, "fail")
    assert (result.code, result.out, result.err) == (1, b"", "penstock: [0x301] boom\n")


def test_unknown_route_is_exit_code_1(penstock: Penstock, server: str) -> None:
    result = penstock("call", server, "nowhere")
    assert result.code == 1
    assert "nowhere" in result.err
    assert_one_line(result)


def test_nobody_there_is_exit_code_3(penstock: Penstock, tmp_path: Path) -> None:
    result = penstock("call", f"rsocket+unix://{tmp_path}/nobody", "echo")
    assert result.code == 3
    assert_one_line(result)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("rsocket+tcq://127.0.0.1:1", "echo"), "did you mean 'tcp'?"),
        (("rsocket+tcp://127.0.0.1:1", "echo", "-d", "@/no/such/file"), "'/no/such/file'"),
        (("rsocket+tcp://127.0.0.1:1", "echo", "--cafile", "/no/such/file"), "'/no/such/file'"),
        (("rsocket+tcp://127.0.0.1:1", "echo", "--insecure"), "not encrypted"),
        (("rsocket+tcp://127.0.0.1:1",), "penstock call --help"),
    ],
)
def test_wrong_use_is_exit_code_2(penstock: Penstock, arguments: tuple[str, ...], part: str) -> None:
    result = penstock("call", *arguments)
    assert result.code == 2
    assert part in result.err
    assert_one_line(result)


def test_timeout_is_exit_code_1(penstock: Penstock, server: str) -> None:
    result = penstock("call", server, "slow", "-d", "60000", "--timeout", "0.05")
    assert result.code == 1
    assert "--timeout" in result.err
    assert_one_line(result)
