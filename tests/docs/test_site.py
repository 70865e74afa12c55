from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import weirpool
from tests.docs.site import HtmlPage, SiteServer, build, read, target_of
from tests.feeds.browser import Browser, browsing

pytestmark = pytest.mark.xdist_group("site")

# Modules besides `weirpool` whose names are public.
MODULES = (
    "weirpool.archive",
    "weirpool.archive.snapshot",
    "weirpool.journal",
    "weirpool.journal.collect",
    "weirpool.objects",
    "weirpool.observe.item_traces",
    "weirpool.observe.opentelemetry",
    "weirpool.observe.prometheus",
    "weirpool.reactive",
    "weirpool.serving",
    "weirpool.spark",
    "weirpool.spark.local",
    "weirpool.testing",
)
PUBLIC = [("weirpool", name) for name in weirpool.__all__] + [
    (module, name) for module in MODULES for name in importlib.import_module(module).__all__
]
WIDTHS = (360, 768, 1440)
SOME_PAGES = (
    "",
    "how-to/serve-and-call/",
    "reference/api/services/",
    "reference/settings/",
    "explanation/performance/",
)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[str, HtmlPage]:
    return read(site)


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[SiteServer]:
    with SiteServer(site) as server:
        yield server


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


def test_every_public_name_has_an_entry(pages: dict[str, HtmlPage]) -> None:
    entries = {anchor for path, page in pages.items() if path.startswith("reference/api/") for anchor in page.anchors}
    known = {f"{module}.{name}" for module, name in PUBLIC}
    # What is public in `weirpool` and in the module that defines it has one entry.
    missing = {name for name in known - entries if f"weirpool.{name.rpartition('.')[2]}" not in entries}
    assert missing == set(), "add `::: NAME` to a page in docs/reference/api"
    assert {f"weirpool.{name}" for name in weirpool.__all__} <= entries


def test_every_public_method_has_a_docstring_and_an_anchor(pages: dict[str, HtmlPage]) -> None:
    entries = {anchor for path, page in pages.items() if path.startswith("reference/api/") for anchor in page.anchors}
    bare, hidden = [], []
    for module, name in PUBLIC:
        owner = getattr(importlib.import_module(module), name)
        if not inspect.isclass(owner) or issubclass(owner, weirpool.Settings):
            continue
        for member, value in vars(owner).items():
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if member.startswith("_") or not inspect.isfunction(function):
                continue
            if not inspect.getdoc(getattr(owner, member)):
                bare.append(f"{module}.{name}.{member}")
            elif not {f"{module}.{name}.{member}", f"weirpool.{name}.{member}"} & entries:
                hidden.append(f"{module}.{name}.{member}")
    assert (bare, hidden) == ([], [])


def test_every_setting_has_an_anchor(pages: dict[str, HtmlPage]) -> None:
    anchors = pages["reference/settings/index.html"].anchors
    assert [name for name in weirpool.Settings.__dataclass_fields__ if f"weirpool.Settings.{name}" not in anchors] == []


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[str, HtmlPage]) -> None:
    assert {a for page in pages.values() for a in page.loaded if re.match(r"(\w+:)?//", a)} == set()
    styles = "\n".join(file.read_text() for file in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)]*", styles) == []
    # The theme's scripts ask other hosts for these: diagrams, and numbers about the sources.
    assert {"mermaid"} & {name for page in pages.values() for name in page.classes} == set()
    assert {"source"} & {name for page in pages.values() for name in page.components} == set()


def test_links_and_anchors_exist(site: Path, pages: dict[str, HtmlPage]) -> None:
    broken = []
    for path, page in pages.items():
        if path == "404.html":
            continue
        for address in page.linked:
            if re.match(r"[a-z]+:", address):
                continue
            target, anchor = target_of(path, address)
            if target in pages:
                if anchor and anchor not in pages[target].anchors:
                    broken.append((path, address))
            elif not (site / target).is_file():
                broken.append((path, address))
    assert broken == []


def test_pages_have_what_other_sites_show(site: Path) -> None:
    home = (site / "index.html").read_text()
    assert '<meta property="og:title"' in home and '<meta property="og:description"' in home
    [image] = re.findall(r'<meta property="og:image" content="https://[^"]+/(assets/[^"]+)"', home)
    assert (site / image).is_file()
    assert "how-to/serve-and-call/" in (site / "sitemap.xml").read_text() and (site / "404.html").is_file()
    assert "weirpool" in json.loads((site / "search/search_index.json").read_text())["docs"][0]["text"].lower()


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_and_have_a_menu(browser: Browser, server: SiteServer, width: int) -> None:
    browser.resize(width, 900)
    for page in SOME_PAGES:
        browser.open(server.url + page)
        assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth"), page
    if width < 1220:  # the menu is a drawer
        browser.run("document.querySelector('label[for=__drawer]').click()")
    browser.until("""[...document.querySelectorAll('.md-nav__link, .md-tabs__link')].some(link => {
        const box = link.getBoundingClientRect();
        return link.innerText.includes('Services and clients') && box.width > 0 && box.left >= 0
            && box.right <= window.innerWidth;
    })""")
    assert browser.log() == []


def test_search_finds_pages(browser: Browser, server: SiteServer) -> None:
    browser.resize(1440, 900)
    browser.open(server.url)
    browser.run("document.querySelector('#__search').click(); document.querySelector('.md-search__input').focus()")
    browser.type("resume")
    browser.until("document.querySelectorAll('.md-search-result__item').length > 0")
    titles = browser.texts(".md-search-result__item h1")
    assert "Resume sessions" in titles[:3]
    assert browser.log() == []


def test_dark_mode_follows_the_system_and_the_switch(browser: Browser, server: SiteServer) -> None:
    browser.resize(1440, 900)
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    browser.prefer("dark")
    browser.open(server.url)
    browser.until(f"{scheme} === 'slate'")
    browser.prefer("light")
    browser.until(f"{scheme} === 'default'")
    browser.run("[...document.querySelectorAll('[data-md-component=palette] label')].find(e => !e.hidden).click()")
    browser.run("[...document.querySelectorAll('[data-md-component=palette] label')].find(e => !e.hidden).click()")
    browser.until(f"{scheme} === 'slate'")
    browser.run("localStorage.clear()")
    assert browser.log() == []


def test_only_the_site_itself_is_asked(browser: Browser, server: SiteServer) -> None:
    for page in SOME_PAGES:
        browser.open(server.url + page)
        loaded = browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
        assert loaded and [name for name in loaded if not name.startswith((server.url, "data:", "blob:"))] == []
    assert server.missing == []
