"""Which names a page answers to."""

from __future__ import annotations

import re
from http.client import HTTPConnection
from socket import gethostname
from urllib.parse import urlsplit

import pytest

from weirpool.feeds.board import Board
from weirpool.feeds.http import listening
from weirpool.pages.guard import is_meant, texts_script
from weirpool.texts import shown

SITES = [
    "evil.example",
    "evil.example:7880",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil",
    "",
    "[",
    "a b",
    "127.0.0.1,x",
    "evil.example@127.0.0.1",
    "127.0.0.1:x",
    "127.0.0.1:123456",
    "127.0.0.1/",
    "[::1",
    "\u0661",
    "0x7f.1",
    "evil.example.",
    "2130706433",
]


@pytest.mark.parametrize("listening", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "::", "192.0.2.1"])
@pytest.mark.parametrize("site", SITES)
def test_names_of_sites_are_not_answered(site: str, listening: str) -> None:
    assert not is_meant(site, listening)


@pytest.mark.parametrize("header", ["localhost", "LOCALHOST:9", "127.0.0.1:7", "127.0.0.2", "[::1]:80", "localhost."])
def test_this_machine_has_several_names(header: str) -> None:
    assert all(is_meant(header, each) for each in ("127.0.0.1", "localhost", "0.0.0.0"))


OTHERS = ["192.0.2.1", "192.0.2.1:7880", "[2001:db8::1]:7880", gethostname(), "box.example:1"]


@pytest.mark.parametrize("header", OTHERS)
def test_other_addresses_are_answered_where_they_are_listened_on(header: str) -> None:
    assert is_meant(header, "0.0.0.0", ["box.example"]) and is_meant(header, "::", ["BOX.example."])
    assert is_meant(header, "127.0.0.1", ["box.example"]) == (header == "box.example:1")


def test_the_name_that_is_listened_on_is_answered() -> None:
    assert is_meant("box.example:7880", "box.example") and not is_meant("box.example.evil.example", "box.example")


def test_a_port_can_be_required() -> None:
    assert is_meant("localhost:5", "127.0.0.1", port=5)
    assert not any(is_meant(each, "127.0.0.1", port=5) for each in ("localhost", "localhost:6", "127.0.0.1:55"))


@pytest.mark.parametrize(
    ("host", "status"), [("evil.example", 403), ("127.0.0.1", 200), ("192.0.2.7:7880", 200), ("box.example", 200)]
)
def test_a_collector_on_all_addresses_answers_no_site(host: str, status: int) -> None:
    with listening(Board(), "0.0.0.0", 0, names=["box.example"]) as url:
        connection = HTTPConnection("127.0.0.1", urlsplit(url).port)
        connection.request("GET", "/status", headers={"Host": host})
        assert connection.getresponse().status == status
        connection.close()


def test_pages_escape_what_terminals_escape() -> None:
    [characters] = re.findall(r"const UNSAFE = (/\[.*\]/)gu;", texts_script().decode())
    pattern = re.compile(characters.strip("/"))
    for code in range(0x3000):
        assert (shown(chr(code)) != chr(code)) == (pattern.fullmatch(chr(code)) is not None), hex(code)
