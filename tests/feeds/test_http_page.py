"""The page in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.feeds.browser import ENTER, TAB, Browser, browsing
from weirpool.feeds.board import Board
from weirpool.feeds.http import listening
from weirpool.feeds.status import FeedState, FeedStatus, Lag, ServedStatus

# One browser for all of them.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

HOSTILE = "<img src=x onerror=window.broken=1><script>window.broken=1</script>\u202e\x00"


class Shown(Board):
    """A board with the statuses of a test, which are not on any disk."""

    def _complete(self, feed: FeedStatus, now: float) -> None:
        pass


def status(name: str, state: FeedState = FeedState.LIVE, **options: Any) -> FeedStatus:
    fields: dict[str, Any] = {"url": "rsocket+tcp://host:7878", "route": "r", "journal": "j", "source": name}
    return FeedStatus(**{"name": name, "state": state} | fields | options)


FEEDS = [
    status("flights", rate=1234.4, credit=500, budget_free=256 * 2**20, readers={"report": Lag(5, 12_345, 75.0)}),
    status("quotes", FeedState.WAITING_FOR_BUDGET, reason="no reader commits", budget_free=0, gaps=3),
    status("hostile", FeedState.REFUSED, reason=HOSTILE, route=HOSTILE, readers={"alerts": Lag(0, 7, 2.0)}),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def board() -> Board:
    board = Shown()
    board.publish(FEEDS)
    return board


@pytest.fixture
def page(browser: Browser, board: Board) -> Iterator[Browser]:
    with listening(board, "127.0.0.1", 0) as url:
        browser.resize(1280, 800)
        browser.prefer("light")
        browser.open(url)
        browser.until("document.querySelectorAll('#feeds tbody tr').length >= 3")
        yield browser


def names(page: Browser) -> list[str]:
    return page.texts("#feeds tbody td:first-child")


def test_page_shows_feeds_and_readers(page: Browser) -> None:
    assert names(page) == ["flights", "hostile", "quotes"]
    cells = page.texts("#feeds tbody tr:first-child td")
    assert cells[:8] == ["flights", "live", "1,234", "12,345", "75 s", "256 MiB", "500", "0"]
    assert page.texts("#feeds tbody tr:last-child td")[1] == "waiting for budget\nno reader commits"
    assert page.texts("#readers tbody td") == ["alerts", "1", "7", "2.0 s", "report", "1", "12,345", "75 s"]
    assert page.texts("#summary") == ["1 live, 1 waiting for budget, 1 refused"]
    # Nothing was blocked, missing or broken.
    assert page.log() == []


def test_text_of_peers_is_only_text(page: Browser) -> None:
    escaped = HOSTILE.replace("\u202e", "\\u202e").replace("\x00", "\\u0000")
    cells = page.texts("#feeds tbody tr:nth-child(2) td")
    assert cells[1] == f"refused\n{escaped}"
    assert cells[-1] == f"{escaped}, rsocket+tcp://host:7878"
    assert page.run("return window.broken === undefined && document.querySelectorAll('img').length === 0")
    assert page.run("return document.querySelectorAll('script').length") == 1


def test_page_follows_the_collector(page: Browser, board: Board) -> None:
    board.publish([status("only", FeedState.COMPLETE)])
    page.until("document.querySelectorAll('#feeds tbody tr').length === 1")
    assert names(page) == ["only"]
    assert page.texts("#readers tbody td") == ["No reader has committed a position."]


def test_only_problems_are_shown_as_bad(page: Browser, board: Board) -> None:
    board.publish([status("a", FeedState.STANDBY), status("b", FeedState.LIVE)])
    board.warn("all feeds go on as before, because of <b>\u202e")
    page.until("document.getElementById('summary').className === 'bad'")
    assert page.texts("#summary") == ["all feeds go on as before, because of <b>\\u202e; 1 live, 1 standby"]
    assert page.run("return document.querySelectorAll('#feeds .bad').length") == 0


def test_page_shows_served_journals_if_there_are_some(page: Browser, board: Board) -> None:
    hidden = "document.getElementById('serving').hidden"
    page.until(hidden)
    board.serve([ServedStatus("market", "/data/market", HOSTILE, 2)])
    page.until(f"!{hidden}")
    journal, connections, url, folder = page.texts("#served tbody td")
    assert (journal, connections, folder) == ("market", "2", "/data/market") and url.startswith("<img src=x")


def test_page_is_used_with_the_keyboard(page: Browser) -> None:
    page.type("quo")
    # Without the focus in the field, keys go to the page.
    assert names(page) == ["flights", "hostile", "quotes"]
    page.type(TAB)
    assert page.run("return document.activeElement.id") == "search"
    page.type("quo")
    assert names(page) == ["quotes"]
    page.run("document.getElementById('search').select()")
    page.type("\ue017")
    assert names(page) == ["flights", "hostile", "quotes"]
    # The table, which can be scrolled, and the headings, which sort.
    page.type(TAB)
    for _ in range(5):
        page.type(TAB)
        if page.run("return document.activeElement.textContent") == "Lag, rows":
            break
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.type(ENTER)
    assert names(page) == ["flights", "hostile", "quotes"]
    assert page.run("return document.querySelector('th:nth-child(4)').getAttribute('aria-sort')") == "descending"
    page.type(ENTER)
    assert names(page) == ["quotes", "hostile", "flights"]


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_page_fits_its_width(page: Browser, width: int) -> None:
    page.resize(width, 800)
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    visible = page.run(
        "return [...document.querySelectorAll('#feeds td')].every(e => e.getBoundingClientRect().width > 20)"
    )
    assert visible
    if width < 700:
        # A row is a list: each cell has its heading beside it.
        label = "return getComputedStyle(document.querySelector('#feeds td:nth-child(3)'), '::before').content"
        assert page.run(label) == '"Rows/s"'


def test_colors_follow_the_scheme_and_have_contrast(page: Browser) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        grounds.add(page.run("return getComputedStyle(document.body).backgroundColor"))
        # WCAG 2.2, 1.4.3: a contrast of at least 4.5.
        assert page.run(CONTRAST) >= 4.5
    assert len(grounds) == 2


CONTRAST = """
const parse = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = (text) => {
  const [r, g, b] = parse(text).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (e) => {
  for (; e; e = e.parentElement) {
    const color = getComputedStyle(e).backgroundColor;
    if (color !== "rgba(0, 0, 0, 0)") return color;
  }
  return "rgb(255, 255, 255)";
};
const leaves = [...document.querySelectorAll("body *")].filter((e) => e.innerText && e.children.length === 0);
return Math.min(...leaves.map((e) => {
  const [one, other] = [light(getComputedStyle(e).color), light(ground(e))].sort((a, b) => b - a);
  return (one + 0.05) / (other + 0.05);
}));
"""


@pytest.mark.parametrize("width", [360, 1440])
def test_long_names_are_shown_as_a_whole(page: Browser, board: Board, width: int) -> None:
    page.resize(width, 800)
    board.publish([status("a" * 128)])
    page.until("document.querySelectorAll('#feeds tbody tr').length == 1")
    assert page.run(
        "return [...document.querySelectorAll('#feeds, #feeds td')].every(e => e.scrollWidth <= e.clientWidth + 1)"
    )
