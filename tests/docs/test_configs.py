from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs import given
from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.missing import need_module
from weirpool.cli.parser import command

SECRETS = {"group-key": "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gISE=", "quotes": "secret", "serve": "secret"}
CONFIGS = [block for page in PAGES for block in blocks(page, "toml", "json", "yaml")]
SETTINGS_OF_VERBS = "docs/reference/cli.md"


def ids(block: Block) -> str:
    return f"{block.page}:{block.line}"


@pytest.mark.parametrize("block", [block for block in CONFIGS if block.language == "json"], ids=ids)
def test_json_is_json(block: Block) -> None:
    assert json.loads(block.text)


@pytest.mark.parametrize("block", [block for block in CONFIGS if block.language == "yaml"], ids=ids)
def test_yaml_is_yaml(block: Block) -> None:
    yaml = need_module("yaml")
    assert yaml.safe_load(block.text)


@pytest.mark.parametrize(
    "block", [block for block in CONFIGS if block.language == "toml" and block.page != SETTINGS_OF_VERBS], ids=ids
)
def test_feeds_are_accepted(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given.certificates()
    given_tables = tomllib.loads(block.text)
    text = block.text.replace("/run/secrets", str(tmp_path)).replace("/var/lib/weirpool", str(tmp_path))
    for name, secret in SECRETS.items():
        (tmp_path / name).write_text(secret)
    if not any("url" in feed for feed in given_tables.get("feed", {}).values()):
        name = next(iter(given_tables.get("feed", {"flights": {}})))
        text = f'[feed.{name}]\nurl = "rsocket+tcp://localhost:1"\nroute = "a"\njournal = "data/eu/market"\n{text}'
    (tmp_path / "feeds.toml").write_text(text)
    result = subprocess.run(
        [sys.executable, "-m", "weirpool", "collect", "--config", "feeds.toml", "--check"],
        cwd=tmp_path,
        env={**given.environment(), "FLIGHTS_TOKEN": "secret", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stderr == ""
    assert result.returncode == 0


def test_options_file_names_options_that_exist() -> None:
    [block] = [block for block in CONFIGS if block.page == SETTINGS_OF_VERBS]
    verbs = command().commands
    for name, value in tomllib.loads(block.text).items():
        options = value if isinstance(value, dict) else {name: value}
        verb = verbs[name] if isinstance(value, dict) else verbs["stream"]
        known = {each.name for each in verb.params} | {opt.lstrip("-") for each in verb.params for opt in each.opts}
        assert set(options) <= known
