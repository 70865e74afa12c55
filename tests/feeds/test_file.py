from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.errors import LocalError
from weirpool.feeds.config import FeedConfig, Storage, Tls
from weirpool.feeds.file import load, parse
from weirpool.feeds.retry import Retry

BASE = """\
[defaults]
url = "rsocket+tcp://localhost:7878"
journal = "data"
retry = {longest = "30s"}
[feed.good]
route = "good"
"""


def problem(text: str, tmp_path: Path, name: str = "bad") -> str:
    """Return the problem of the feed `name`, beside which the feed `good` has none."""
    file = parse(tmp_path / "feeds.toml", BASE + text)
    assert set(file.feeds) == {"good"}
    assert set(file.problems) == {name}
    assert file.problems[name].startswith(f"{tmp_path / 'feeds.toml'}: feed {name!r}: ")
    return file.problems[name].partition(f"feed {name!r}: ")[2]


def test_defaults_are_merged_key_by_key(tmp_path: Path) -> None:
    text = '[feed.own]\nroute = "own"\nbudget = "1GiB"\nretry = {first = 2}\nurl = "river+tcp://other:1"\n'
    file = parse(tmp_path / "feeds.toml", BASE + text)
    own, good = file.feeds["own"], file.feeds["good"]
    assert (own.budget, own.retry.first, own.retry.longest, own.url) == (2**30, 2, 30, "river+tcp://other:1")
    assert (good.budget, good.retry.first, good.retry.longest) == (2**28, 1, 30)
    assert good.journal == str(tmp_path / "data")


def test_disabled_feeds_do_not_run(tmp_path: Path) -> None:
    text = '[feed.off]\nroute = "r"\nenabled = false\n[feed.twin]\nroute = "r"\nsource = "good"\nenabled = false\n'
    file = parse(tmp_path / "f", BASE + text)
    assert (set(file.feeds), file.disabled, file.problems) == ({"good"}, {"off", "twin"}, {})


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('rotue = "r"', "rotue is not known; did you mean 'route'?"),
        ("", "route is missing"),
        ('route = 5', "route: Expected `str`, got `int`"),
        ('route = "r"\nbudget = "lots"', "budget: 'lots' is not valid; it must be a size in bytes"),
        ('route = "r"\nretry = {frist = 1}', "retry.frist is not known; did you mean 'first'?"),
        ('route = "r"\nretry = {first = "1w"}', "retry.first: '1w' is not valid; it must be a duration"),
        ('route = "r"\nretry = {first = 50}', "retry: first is 50"),
        ('route = "r"\nsettings = {creddit = 1}', "settings.creddit is not a setting that can be given here"),
        ('route = "r"\nsettings = {credit = "much"}', "settings.credit is 'much'; it must be a whole number"),
        ('route = "r"\nurl = "rsockt+tcp://h:1"', "did you mean 'rsocket'?"),
        ('route = "r"\nsource = "{nme}"', "source: {nme} is not known"),
        ('route = "r"\nsource = "good"', "the log 'good' in"),
        ('route = "r"\nauth = {env = "A", bearer = "B"}', "auth: write bearer, or user and password"),
        ('route = "r"\nauth = {bearer = {env = "A", file = "B"}}', "auth.bearer: a value that is stored elsewhere"),
        ('route = "r"\nstorage = {durable = "remote"}', "needs the store"),
    ],
)  # fmt: skip
def test_error_in_a_feed_names_the_key_and_spares_others(table: str, expected: str, tmp_path: Path) -> None:
    assert expected in problem(f"[feed.bad]\n{table}\n", tmp_path)


def test_feed_must_be_a_table_with_a_valid_name(tmp_path: Path) -> None:
    assert "cannot name a feed" in problem('[feed."a b"]\nroute = "r"\n', tmp_path, "a b")
    assert "it must be a table" in parse(tmp_path / "f", "[feed]\nbad = 5\n").problems["bad"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[feed.x", "not valid TOML"),
        ("", "there are no feeds"),
        ("[feeds.x]\n", "'feeds' is not known; did you mean 'feed'?"),
        ("[defaults]\nbudgt = 1\n[feed.x]\n", "defaults: budgt is not known; did you mean 'budget'?"),
        ("[defaults]\ncredit = 'x'\n[feed.x]\n", "defaults: credit: Expected"),
        ("[[feed]]\nname = 'x'\n", "there are no feeds; add [feed.NAME]"),
    ],
)
def test_error_in_the_file_names_it(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "feeds.toml"
    path.write_text(text)
    with pytest.raises(LocalError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert expected in str(caught.value)


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="No such file"):
        load(tmp_path / "nowhere")
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(LocalError, match="not valid TOML"):
        load(tmp_path / "binary")


def test_page_about_feeds_has_a_valid_example_and_all_keys(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/feeds.md").read_text()
    example = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    file = parse(tmp_path / "feeds.toml", example)
    assert (set(file.feeds), file.problems) == ({"flights", "quotes"}, {})
    described = set(re.findall(r"`(\w+)`", "".join(line for line in page.splitlines() if line.startswith("| `"))))
    tables = (FeedConfig, Retry, Storage, Tls)
    assert {key for table in tables for key in table.__struct_fields__} <= described


VALUES = st.recursive(
    st.sampled_from(['"x"', "5", "-1", "true", "1.5", "nan", "1979-05-27", '"{name}"', '"1s"']),
    lambda inner: st.lists(inner, max_size=2).map(lambda parts: f"[{', '.join(parts)}]")
    | st.lists(st.tuples(st.sampled_from(["env", "file", "first", "bearer", "credit", "durable"]), inner),
               max_size=2, unique_by=lambda pair: pair[0])
    .map(lambda pairs: "{" + ", ".join(f"{key} = {value}" for key, value in pairs) + "}"),
    max_leaves=4,
)  # fmt: skip
KEYS = (
    "url", "route", "journal", "source", "data", "metadata", "auth", "headers", "tls", "settings", "budget", "credit",
    "retry", "storage", "accept_loss", "enabled", "linger",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_any_table_is_a_feed_or_a_problem(table: dict[str, str]) -> None:
    text = BASE + "[feed.any]\n" + "".join(f"{key} = {value}\n" for key, value in table.items())
    file = parse(Path("/etc/feeds.toml"), text)
    assert "good" in file.feeds
    assert len({*file.feeds, *file.disabled, *file.problems}) == 2


GROUP = '[group]\nname = "edge"\nkey = {env = "KEY"}\n'
REMOTE = """\
url = "rsocket+tcp://h:1"
route = "r"
journal = "j"
[feed.{}.storage]
store = "{}"
durable = "remote"
"""


@pytest.mark.parametrize(
    ("group", "part"),
    [
        ("[group]\n", "group: name is missing"),
        ('[group]\nname = "edge"\nkey = "in the file"\n', "group: key"),
        ('[group]\nnam = "edge"\n', "did you mean 'name'?"),
        ('[group]\nname = "../edge"\nkey = {env = "KEY"}\n', "../edge"),
        ("group = 1\n", "group: "),
    ],
)
def test_a_wrong_group_is_an_error(group: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=re.escape(part)):
        parse(tmp_path / "feeds.toml", f"{group}[feed.a]\n" + REMOTE.format("a", "s"))


def test_all_feeds_of_a_group_are_where_it_is(tmp_path: Path) -> None:
    text = "[feed.a]\n" + REMOTE.format("a", "s")
    alone = parse(tmp_path / "feeds.toml", text)
    assert alone.group is None and "needs the table [group]" in alone.problems["a"]
    text += "[feed.b]\n" + REMOTE.format("b", "other")
    text += '[feed.c]\nurl = "rsocket+tcp://h:1"\nroute = "r"\njournal = "j"\n'
    file = parse(tmp_path / "feeds.toml", GROUP + text)
    assert file.group is not None and list(file.feeds) == ["a"]
    assert "the same journal and storage.store" in file.problems["b"]
    assert 'must be "remote"' in file.problems["c"]
