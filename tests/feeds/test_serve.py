from __future__ import annotations

from pathlib import Path

import pytest

from weirpool.errors import LocalError
from weirpool.feeds.file import parse
from weirpool.feeds.serve import Serve
from weirpool.feeds.values import Reference

FEED = '[feed.a]\nurl = "rsocket+tcp://h:1"\nroute = "r"\njournal = "j"\n'


def test_paths_start_from_the_folder_of_the_file(tmp_path: Path) -> None:
    text = (
        'url = ["rsocket+tls://:1", "rsocket+wss://:2"]\ncert = "c.pem"\nkey = "/k.pem"\ncafile = "ca.pem"\n'
        'token = {file = "token"}\naddress = "rsocket+tls://h:1"\njournals = {market = "data/j"}\n'
    )
    assert parse(tmp_path / "feeds.toml", f"[serve]\n{text}{FEED}").serve == Serve(
        url=("rsocket+tls://:1", "rsocket+wss://:2"),
        cert=f"{tmp_path}/c.pem",
        key="/k.pem",
        cafile=f"{tmp_path}/ca.pem",
        token=Reference(file="token"),
        address="rsocket+tls://h:1",
        journals={"market": f"{tmp_path}/data/j"},
    )
    assert parse(tmp_path / "feeds.toml", FEED).serve is None


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("serve = 1\n", "serve: Expected `object`, got `int`"),
        ("[serve]\n", "serve: url is missing"),
        ('[serve]\nurl = "u"\ntokn = "x"\n', "serve: tokn is not known; did you mean 'token'?"),
        ('[serve]\nurl = "u"\ntoken = {}\n', "serve: token: a value that is stored elsewhere"),
        ("[sreve]\n", "'sreve' is not known; did you mean 'serve'?"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(LocalError) as caught:
        parse(tmp_path / "feeds.toml", text + FEED)
    assert part in str(caught.value)
