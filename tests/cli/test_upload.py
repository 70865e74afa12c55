from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Penstock, assert_one_line


@pytest.mark.parametrize("items", ["1\n2\n3", "-"])
def test_lines_are_items(penstock: Penstock, server: str, items: str) -> None:
    result = penstock("upload", server, "sum", items, stdin=b"1\n2\r\n3\n")
    assert (result.code, result.out) == (0, b"6\n")


def test_items_from_a_file_follow_the_data(penstock: Penstock, server: str, tmp_path: Path) -> None:
    file = tmp_path / "items"
    file.write_text("".join(f"{number}\n" for number in range(1000)))
    result = penstock("upload", server, "sum", f"@{file}", "-d", "500", "--json")
    assert result.objects == [{"data": "500000", "metadata": None}]


def test_failing_handler_is_exit_code_1(penstock: Penstock, server: str) -> None:
    result = penstock("upload", server, "sum", "no number")
    assert result.code == 1
    assert_one_line(result)
