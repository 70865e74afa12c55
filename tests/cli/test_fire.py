from __future__ import annotations

from tests.cli.conftest import INTEROP, Penstock, assert_one_line, serving


def test_item_arrives(penstock: Penstock) -> None:
    with serving(f"{INTEROP}:service", "rsocket+tcp://127.0.0.1:0") as (process, urls):
        result = penstock("fire", urls[0], "log", "-d", "hello")
        assert (result.code, result.out, result.err) == (0, b"", "")
        assert process.stdout is not None
        assert process.stdout.readline() == "hello\n"


def test_wrong_url_is_exit_code_2(penstock: Penstock) -> None:
    result = penstock("fire", "localhost:7878", "log")
    assert result.code == 2
    assert_one_line(result)
