"""The page in a real browser, against a real server."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import command, serving
from tests.feeds.browser import ENTER, TAB, Browser, browsing

SERVICE = f"{Path(__file__).parent / 'hostile.py'}:service"
OUTCOME = "document.querySelector('#outcome').innerText"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def servers() -> Iterator[list[str]]:
    """A server that describes itself, over two protocols."""
    urls = ["rsocket+tcp://127.0.0.1:0", "river+tcp://127.0.0.1:0"]
    with serving(SERVICE, *urls, options=["--reflection"]) as (_, found):
        yield found


@contextmanager
def trying(url: str) -> Iterator[str]:
    """Run `weirpool ui`; yield the URL of its page."""
    with subprocess.Popen(command("ui", url, "--no-open"), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def pages(servers: list[str]) -> Iterator[list[str]]:
    with trying(servers[0]) as rsocket, trying(servers[1]) as river:
        yield [rsocket, river]


@pytest.fixture(params=[0, 1], ids=["rsocket", "river"])
def page(request: pytest.FixtureRequest, browser: Browser, pages: list[str]) -> Browser:
    """The browser with a fresh page."""
    return opened(browser, pages[request.param])


@pytest.fixture
def rsocket(browser: Browser, pages: list[str]) -> Browser:
    return opened(browser, pages[0])


def opened(browser: Browser, url: str) -> Browser:
    browser.resize(1280, 900)
    browser.open(url)
    browser.until("document.querySelector('#state').innerText === 'connected'")
    return browser


def click(page: Browser, text: str) -> None:
    """Press the button that begins with a text."""
    page.run(
        "[...document.querySelectorAll('button')].find(e => e.innerText.trim().startsWith(arguments[0])"
        " && e.offsetParent).click()",
        text,
    )


def write(page: Browser, selector: str, text: str) -> None:
    """Type into a field, in place of what it has."""
    page.run("const e = document.querySelector(arguments[0]); e.value = ''; e.focus()", selector)
    page.type(text)


def ended(page: Browser, how: str = "Completed") -> None:
    page.until(f"['Completed', 'Failed', 'Canceled'].includes({OUTCOME})")
    assert page.texts("#outcome") == [how], page.texts("#failure")


def copied(page: Browser, what: str) -> str:
    click(page, f"Copy as {what}")
    page.until(
        "document.querySelector('#copied pre')?.innerText.startsWith(arguments[0])", {"command": ""}.get(what, "import")
    )
    [text] = page.texts("#copied pre")
    return text


def run(text: str) -> str:
    """Run a copied text as a command or a program; return its output."""
    if text.startswith("import "):
        made = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    else:
        weirpool = f'weirpool() {{ {shlex.quote(sys.executable)} -m weirpool "$@"; }}'
        made = subprocess.run(["sh", "-c", f"{weirpool}\n{text}"], capture_output=True, text=True, check=True)
    return made.stdout


def test_a_call_with_a_form_and_its_copies(page: Browser) -> None:
    click(page, "quotes.latest")
    write(page, "#fields input", "it's é")
    page.type(ENTER)
    ended(page)
    [shown] = page.texts("#items pre")
    expected = {"symbol": "it's é", "price": 1.5}
    assert json.loads(shown) == expected
    assert json.loads(run(copied(page, "command"))) == expected
    assert run(copied(page, "Python")).strip() == str(expected)
    assert page.log() == []


def test_a_form_with_everything(page: Browser) -> None:
    click(page, "orders.place")
    page.run("document.querySelector('#fields select').value = 1")
    click(page, "Add")
    write(page, "#fields [aria-label='name']", "ACME")
    write(page, "#fields [aria-label='count']", "2000")
    click(page, "Send")
    assert page.texts("#wrong") == ["count: at least 1, at most 1000"]
    write(page, "#fields [aria-label='count']", "7")
    for name in ("note", "limit", "tags"):
        page.run(
            "[...document.querySelectorAll('.name')].find(e => e.innerText.trim() === arguments[0]).control.click()",
            name,
        )
    write(page, "#fields input[aria-label='note']", "a note")
    write(page, "#fields [aria-label='limit']", "2.50")
    click(page, "Send")
    ended(page)
    order = json.loads("".join(page.texts("#items pre")))
    assert order["side"] == "sell" and order["note"] == "a note" and order["limit"] == 2.5 and order["tags"] == {}
    assert order["legs"] == [{"symbol": {"name": "ACME"}, "count": 7}]


def test_variables_of_a_route_have_fields(page: Browser) -> None:
    click(page, "candles.{symbol}.live")
    click(page, "Send")
    assert page.texts("#wrong") == ["symbol: write a value; it is a part of the route"]
    write(page, "#variables input", "ACME")
    page.type(ENTER)
    ended(page)
    assert [json.loads(each) for each in page.texts("#items pre")] == ["ACME up", "ACME down"]
    assert run(copied(page, "command")).splitlines() == ['"ACME up"', '"ACME down"']
    click(page, "quotes.latest")
    page.run("document.querySelector('#past').open = true")
    click(page, "candles.ACME.live")
    assert page.texts("#title") == ["candles.{symbol}.live"]
    assert page.run("return document.querySelector('#variables input').value") == "ACME"
    write(page, "#variables input", "BRK.B")
    page.type(ENTER)
    ended(page)
    assert [json.loads(each) for each in page.texts("#items pre")] == ["BRK.B up", "BRK.B down"]
    assert "candles.BRK%2EB.live" in copied(page, "command")


def test_errors_have_their_code(page: Browser) -> None:
    click(page, "quotes.latest")
    write(page, "#fields input", "?")
    click(page, "Send")
    ended(page, "Failed")
    assert "UNKNOWN_SYMBOL" in page.texts("#failure")[0]


def test_a_stream_with_credit_pause_and_cancel(page: Browser) -> None:
    received = "Number(document.querySelector('#received').innerText.replace(/,/g, ''))"
    click(page, "quotes.live")
    write(page, "#fields input", "ACME")
    write(page, "#demand", "3")
    click(page, "Send")
    page.until(f"{received} === 3")
    assert page.texts("#outstanding") == ["0"]
    write(page, "#count", "4")
    click(page, "Request")
    page.until(f"{received} === 7")
    click(page, "Keep requesting")
    page.until(f"{received} > 1000")
    click(page, "Pause")
    page.until("document.querySelector('#outstanding').innerText === '0'")
    paused = page.run(f"return {received}")
    # What the server might still send would have come before the answer to this request.
    click(page, "Request")
    page.until(f"{received} === {paused + 4} && document.querySelector('#outstanding').innerText === '0'")
    # Only the last items are kept.
    assert page.run("return document.querySelectorAll('#items tr, #items pre').length") <= 501
    assert "no longer shown" in page.texts("#dropped")[0]
    click(page, "Cancel")
    ended(page, "Canceled")


def test_items_of_a_channel_are_sent_one_by_one(page: Browser) -> None:
    click(page, "orders.echo")
    write(page, "#fields input", "A")
    click(page, "Send")
    page.until("document.querySelector('#sending').offsetParent !== null")
    for count in (1, 2):
        write(page, "#item-fields [aria-label='name']", "LEG")
        write(page, "#item-fields [aria-label='count']", str(count))
        click(page, "Send item")
        page.until(f"document.querySelector('#received').innerText === '{count}'")
    assert "2 sent, 2 taken" in page.texts("#sent")[0]
    click(page, "Complete")
    ended(page)
    lines = run(copied(page, "command")).splitlines()
    assert [json.loads(line)["count"] for line in lines] == [1, 2]


def test_hostile_content_is_text(rsocket: Browser) -> None:
    click(rsocket, "hostile.html")
    click(rsocket, "Send")
    ended(rsocket)
    assert "<img src=x" in rsocket.texts("#items")[0]
    assert rsocket.run("return document.querySelectorAll('img, #items script, #routes b, #about b').length") == 0
    click(rsocket, "<b>bold</b>")
    assert rsocket.texts("#title") == ["<b>bold</b>"] and rsocket.run("return window.hacked") is None
    click(rsocket, "hostile.huge")
    write(rsocket, "#demand", "20")
    click(rsocket, "Send")
    ended(rsocket)
    assert "5,000,000 bytes" in rsocket.texts("#items")[0]
    assert rsocket.run("return document.querySelector('#items').innerText.length") < 2_000_000
    assert rsocket.log() == []


def test_large_integers_keep_their_digits(rsocket: Browser) -> None:
    click(rsocket, "big")
    write(rsocket, "#fields input", "9007199254740993")
    click(rsocket, "Send")
    ended(rsocket)
    assert rsocket.texts("#items pre") == ['{"number": 9007199254740993}']


def test_works_with_the_keyboard(rsocket: Browser) -> None:
    write(rsocket, "#filter", "latest")
    assert rsocket.texts("#routes li span:first-child") == ["quotes.latest"]
    # Past the button that asks again, to the route.
    rsocket.type(TAB)
    rsocket.type(TAB)
    rsocket.type(ENTER)
    assert rsocket.texts("#title") == ["quotes.latest"]
    write(rsocket, "#fields input", "ACME")
    rsocket.type(ENTER)
    ended(rsocket)
    unnamed = rsocket.run(
        "return [...document.querySelectorAll('button, input, select, textarea')].filter(e => e.offsetParent &&"
        " !(e.textContent || e.ariaLabel || e.labels?.length)).map(e => e.outerHTML)"
    )
    assert unnamed == []


def test_history_repeats_a_request(rsocket: Browser) -> None:
    click(rsocket, "quotes.latest")
    write(rsocket, "#fields input", "FIRST")
    click(rsocket, "Send")
    ended(rsocket)
    click(rsocket, "tree")
    rsocket.run("document.querySelector('#past').open = true")
    click(rsocket, 'quotes.latest {"name": "FIRST"}')
    assert rsocket.run("return document.querySelector('#fields input').value") == "FIRST"


@pytest.mark.parametrize("width", [360, 800, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_every_width(rsocket: Browser, width: int, scheme: str) -> None:
    rsocket.prefer(scheme)
    rsocket.resize(width, 800)
    click(rsocket, "orders.place")
    click(rsocket, "Add")
    assert rsocket.run("return document.documentElement.scrollWidth") <= width
    colors = rsocket.run("const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]")
    [text, ground] = [sum(map(int, re.findall(r"\d+", color)[:3])) for color in colors]
    assert (text > ground) == (scheme == "dark")


def test_says_when_the_server_goes_away_and_returns(browser: Browser, tmp_path: Path) -> None:
    url = f"rsocket+unix://{tmp_path}/socket"
    with trying(url) as page:
        browser.open(page)
        browser.until("document.querySelector('#problem').innerText.includes('trying again')")
        # Without a description, a route is typed by hand.
        with serving(SERVICE, url):
            browser.until("document.querySelector('#state').innerText === 'connected'")
            assert "--reflection" in browser.texts("#undescribed")[0]
            click(browser, "Other route")
            write(browser, "#manual-route", "quotes.latest")
            write(browser, "#text", '{"name": "A"}')
            click(browser, "Send")
            ended(browser)
        browser.until("document.querySelector('#state').innerText === 'away'")
        assert browser.run("return document.querySelector('#send').disabled")
        with serving(SERVICE, url, options=["--reflection"]):
            browser.until("document.querySelectorAll('#routes li').length > 3")
