"""The page of `weirpool ui` in a real browser, with descriptions and data of hostile servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.feeds.browser import Browser, browsing
from tests.tryit.test_door_page import trying

from .bombs import bombs, described
from .hostile import HOSTILE, filled
from .liar import lying

# One browser for all of them.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

HIDDEN = "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]"
SECONDS = 2.0
"""Twice what the page may take of a processor."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as found:
        yield found


@contextmanager
def page_of(browser: Browser, folder: Path, description: bytes, answer: str = "") -> Iterator[Browser]:
    """Open the page of a server that describes itself so."""
    with lying(description, folder, answer) as url, trying(url) as page:
        browser.resize(1280, 900)
        browser.open(page)
        browser.until("document.querySelector('#state').innerText === 'connected'")
        yield browser
        assert browser.log() == []
        # The page would look for its server again.
        browser.open("about:blank")
        browser.log()


def busy(browser: Browser) -> float:
    """Return the seconds of a processor that scripts, styles and layout of the page have taken."""
    found = {each["name"]: each["value"] for each in browser.command("Performance.getMetrics")["metrics"]}
    return float(found["TaskDuration"])


# THREATS 110
def test_the_page_answers_soon(browser: Browser, tmp_path: Path) -> None:
    browser.command("Performance.enable", timeDomain="threadTicks")
    for name, description in bombs():
        if "pattern" in name:
            # The page does not read them.
            continue
        with page_of(browser, tmp_path, description) as page:
            taken = busy(page)
            page.run("const first = document.querySelector('#routes button'); if (first) first.click()")
            elements = page.run("return document.querySelectorAll('*').length")
            assert busy(page) - taken < SECONDS and elements < 20_000, name


# THREATS 109
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_texts(browser: Browser, tmp_path: Path, text: str) -> None:
    with page_of(browser, tmp_path, json.dumps(filled(text)).encode(), text) as page:
        for button in range(page.run("return document.querySelectorAll('#routes button').length")):
            page.run("document.querySelectorAll('#routes button')[arguments[0]].click()", button)
            page.run("document.querySelectorAll('#fields input[type=checkbox]').forEach((each) => each.click())")
        page.run("document.querySelector('#send').click()")
        page.until("document.querySelector('#outcome').innerText !== 'Waiting'")
        elements = "document.querySelectorAll('img, script:not([src]), b').length"
        assert page.run(f"return [window.hacked, {elements}]") == [None, 0]
        shown = page.run(
            "return [document.title, document.body.innerText,"
            " ...[...document.querySelectorAll('*')].flatMap((each) => ['title', 'aria-label', 'placeholder']"
            ".map((name) => each.getAttribute(name) ?? ''))].filter((each) => new RegExp(arguments[0]).test(each))",
            HIDDEN,
        )
        assert shown == []


def test_deep_items_are_shown_soon(browser: Browser, tmp_path: Path) -> None:
    deep = "[" * 60 + json.dumps("x" * 200) + "]" * 60
    routes = [{"route": "text", "kind": "call"}]
    with page_of(browser, tmp_path, described(routes=routes), deep) as page:
        page.run("document.querySelector('#send').click()")
        page.until("document.querySelector('#items pre') !== null")
        assert "x" * 200 in page.texts("#items pre")[0]
    for text in ("[" * 20_000 + "]" * 20_000, '{"a":' * 5_000 + "1" + "}" * 5_000):
        with page_of(browser, tmp_path, described(routes=routes), text) as page:
            page.run("document.querySelector('#send').click()")
            page.until("document.querySelector('#items pre') !== null")
            assert page.texts("#outcome") == ["Completed"]
