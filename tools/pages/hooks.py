"""Hooks of MkDocs: where the sources are, pictures that follow the reader's colors, links to the API."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from tools.pages import charts, interop, machines

ROOT = Path(__file__).parents[2]
PICTURE = re.compile(r'<img alt="[^"]*" src="[^"]*assets/([\w-]+\.svg)"\s*/?>')
SETTINGS_PAGE = "reference/settings.md"
INTEROP_PAGE = "interop.md"
SETTING = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
MENTION = re.compile(r"(?<![`\[])`(Settings\.[a-z]\w+)`(?!\])")


def on_config(config: Any) -> Any:
    """Take the address of the sources from the project's URLs, if it has one."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    if source := urls.get("Source"):
        config.repo_url = source
        config.edit_uri_template = f"{source.rstrip('/')}/edit/main/docs/{{path}}"
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Draw the charts. Give each setting an anchor on the page of settings, and link to it where a page mentions it."""
    if page.file.src_uri == SETTINGS_PAGE:
        for name in SETTING.findall(markdown):
            config.plugins["autorefs"].register_anchor(page, f"weirpool.Settings.{name}", title=name)
        markdown = SETTING.sub(r'| <a id="weirpool.Settings.\1"></a>`\1` |', markdown)
    if page.file.src_uri == INTEROP_PAGE:
        markdown = interop.summarized(markdown)
    markdown = machines.tabled(charts.drawn(markdown))
    return outside_code(markdown, lambda text: MENTION.sub(r"[`\1`][weirpool.\1]", text))


def outside_code(markdown: str, change: Any) -> str:
    """Return a page with its text changed, but not its blocks of code."""
    blocks = FENCE.findall(markdown)
    texts = [change(text) for text in FENCE.split(markdown)]
    return texts[0] + "".join(block + text for block, text in zip(blocks, texts[1:], strict=True))


def on_page_content(html: str, config: Any, **_: Any) -> str:
    """Put pictures into the page, where they have its colors."""
    folder = Path(config.docs_dir) / "assets"
    return PICTURE.sub(lambda found: (folder / found[1]).read_text(), html)
