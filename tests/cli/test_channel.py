from __future__ import annotations

from tests.cli.conftest import Penstock


def test_items_go_both_ways(penstock: Penstock, server: str) -> None:
    result = penstock("channel", server, "double", "-", stdin=b"1\n2\n3\n")
    assert (result.code, result.lines) == (0, [b"2", b"4", b"6"])


def test_data_is_the_first_item(penstock: Penstock, server: str) -> None:
    assert penstock("channel", server, "double", "2", "-d", "1").lines == [b"2", b"4"]


def test_many_items_under_little_credit(penstock: Penstock, server: str) -> None:
    given = b"".join(b"%d\n" % number for number in range(10_000))
    result = penstock("channel", server, "double", "-", "--credit", "2", stdin=given)
    assert [int(line) for line in result.lines] == list(range(0, 20_000, 2))


def test_take_stops_early(penstock: Penstock, server: str) -> None:
    result = penstock("channel", server, "double", "5\n6\n7", "--take", "2", "--json")
    assert [item["data"] for item in result.objects] == ["10", "12"]
