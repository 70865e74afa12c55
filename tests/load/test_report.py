from __future__ import annotations

import re
from html.parser import HTMLParser

from weirpool.load.measured import Measured
from weirpool.load.report import report


class Checker(HTMLParser):
    """Collects what a page refers to, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.lines = 0
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.outside += [f"{name}={value}" for name, value in attrs if name in ("src", "href")]
        self.outside += [tag] if tag in ("script", "link", "img", "iframe") else []
        self.lines += tag == "polyline"

    def handle_data(self, data: str) -> None:
        self.text += data


def round_of(in_flight: int, requests: int) -> Measured:
    measured = Measured(in_flight, 1, seconds=1.0, requests=requests)
    for number in range(requests):
        measured.latency.record(1_000_000 * (number + 1))
        measured.series.add(number / requests)
    return measured


def checked(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    assert checker.outside == []
    assert "nan" not in page and "inf" not in page.replace("info", "")
    return checker


def test_page_is_complete_in_itself() -> None:
    found = checked(report([round_of(1, 100), round_of(8, 1000)], "call echo at rsocket+tcp://localhost:1"))
    # Two distributions, two rates over time, and the rates of both rounds.
    assert found.lines == 5
    assert "8 in flight" in found.text


def test_text_of_users_and_peers_is_escaped() -> None:
    measured = round_of(1, 3)
    measured.fail("<script>alert(1)</script>")
    page = report([measured], "<img src=x>")
    checked(page)
    assert "&lt;img src=x&gt;" in page


def test_round_without_requests_has_a_page() -> None:
    assert checked(report([Measured(1, 1)], "nothing")).lines == 2


def test_points_are_within_the_picture() -> None:
    for places in re.findall(r'points="([^"]*)"', report([round_of(1, 7)], "seven")):
        for place in places.split():
            x, y = (float(part) for part in place.split(","))
            assert 0 <= x <= 720 and 0 <= y <= 280
