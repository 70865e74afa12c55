from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.conftest import Weirpool, assert_one_line
from weirpool.cli.top import render
from weirpool.feeds.board import Board
from weirpool.feeds.http import listening
from weirpool.feeds.status import Document, FeedState, FeedStatus, Lag, ServedStatus

FEEDS = [
    FeedStatus(
        name="flights", url="u", route="r", journal="j", source="s", state=FeedState.LIVE, rate=1234.0,
        budget_free=3 * 2**28, credit=500, readers={"report": Lag(1, 12_345, 300.0)}, position=99,
    ),
    FeedStatus.refused("hostile", "[red]\x1b[2J\u202e"),
]  # fmt: skip


def shown(feeds: list[FeedStatus], width: int, height: int = 0, problem: str = "") -> list[str]:
    return written(Document.of(feeds, time=0.0, healthy=True, ready=True), width, height, problem).splitlines()


def written(document: Document, width: int, height: int = 0, problem: str = "") -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(render(document, width, height, problem))
    return out.getvalue()


def test_table_shows_feeds_and_readers() -> None:
    lines = shown(FEEDS, 140, 20)
    assert "1 live, 1 refused" in lines[0]
    assert lines[1].split() == [
        "Feed", "State", "Rows/s", "Lag", "Lag", "time", "Budget", "left", "Credit", "Gaps", "Reconnects", "Position",
        "Reason",
    ]  # fmt: skip
    assert lines[2].split() == ["flights", "live", "1,234", "12,345", "5", "min", "768", "MiB", "500", "0", "0", "99"]
    assert lines[-1].split() == ["report", "1", "12,345", "5", "min"]


def test_table_shows_served_journals_below_the_rest() -> None:
    served = [ServedStatus(f"j{n}", "/data/j", f"rsocket+tls://collector:7879?journal=j{n}", n) for n in range(6)]
    document = Document.of(FEEDS, time=0.0, healthy=True, ready=True, served=served)
    lines = written(document, 100).splitlines()
    assert lines[-7].split() == ["Served", "journal", "Connections", "URL"]
    assert lines[-1].split() == ["j5", "5", "rsocket+tls://collector:7879?journal=j5"]
    # A small terminal has room for some of them, and for a feed.
    assert len(written(document, 100, 14).splitlines()) <= 14


def test_text_of_peers_is_escaped() -> None:
    for height in (0, 20):
        text = "\n".join(shown(FEEDS, 140, height))
        assert "[red]\\x1b[2J\\u202e" in text
        assert "\x1b[2J" not in text


@pytest.mark.parametrize("width", [40, 80, 89])
def test_narrow_terminal_shows_reasons_below_the_table(width: int) -> None:
    live = FeedStatus(name="odd", url="", route="", journal="", source="", state=FeedState.LIVE, problem="bad budget")
    lines = shown([*FEEDS, live, FeedStatus.refused("quotes", "why " * 99)], width, 24)
    assert "Reason" not in lines[1]
    assert lines[6:9] == [
        "hostile: [red]\\x1b[2J\\u202e",
        "odd: bad budget",
        ("quotes: " + "why " * 99)[: width - 1] + "…",
    ]
    # Feeds with their reasons do not exceed the height of the terminal.
    many = [FeedStatus.refused(f"f{number}", "why") for number in range(50)]
    lines = shown(many, width, 24)
    assert len(lines) <= 24
    assert "more feeds" in "".join(lines)


@pytest.mark.parametrize("width", [80, 200])
def test_table_that_is_shown_once_has_each_reason_in_full(width: int) -> None:
    lines = shown([*FEEDS, FeedStatus.refused("quotes", "why " * 99)], width)
    assert " ".join(lines).count("why") == 99
    assert "Reason" not in lines[1]


@pytest.mark.parametrize("state", FeedState)
def test_table_shows_feeds_in_every_state(state: FeedState) -> None:
    feed = FeedStatus(name="flights", url="", route="", journal="", source="", state=state)
    assert str(state) in shown([feed], 100)[2]
    assert str(state) in shown([feed, *FEEDS], 100, 6)[0]


@pytest.mark.parametrize("width", [30, 50, 70, 80, 100, 120, 200])
def test_table_fits_its_terminal(width: int) -> None:
    lines = shown(FEEDS, width)
    assert max(map(len, lines)) <= width
    assert lines[2].startswith("flights")
    assert "live" in lines[2]


@pytest.mark.parametrize("width", [80, 90, 100, 120, 200])
def test_long_reason_leaves_names_and_numbers(width: int) -> None:
    lines = shown([*FEEDS, FeedStatus.refused("quotes", "why " * 99)], width, 24)
    assert [line.split()[0] for line in lines[1:5]] == ["Feed", "flights", "hostile", "quotes"]
    assert "12,345" in lines[2]


def test_problem_of_the_whole_file_is_shown() -> None:
    document = Document.of(FEEDS, time=0.0, healthy=True, ready=True, problem="all feeds go on as before")
    assert "all feeds go on as before" in written(document, 140).splitlines()[0]


def test_feeds_with_problems_come_first_if_not_all_fit() -> None:
    many = [
        FeedStatus(name=f"f{n:03}", url="", route="", journal="", source="", state=FeedState.LIVE) for n in range(99)
    ]
    lines = shown([*many, FeedStatus.refused("zzz", "why")], 100, 24, "no answer")
    assert len(lines) <= 24
    assert lines[2].startswith("zzz")
    assert "more feeds" in "".join(lines)
    assert "no answer" in lines[0]


def test_status_is_read_from_a_collector(weirpool: Weirpool) -> None:
    board = Board()
    board.publish([FeedStatus.refused("bad", "why")])
    with listening(board, "127.0.0.1", 0) as url:
        assert json.loads(weirpool("top", url, "--json").out)["states"] == {"refused": 1}
        result = weirpool("top", url, "--once")
    assert (result.code, result.err) == (0, "")
    assert b"bad   refused" in result.out


def test_journals_are_read_without_a_collector(weirpool: Weirpool, tmp_path: Path) -> None:
    path = tmp_path / "feeds.toml"
    path.write_text('[feed.a]\nurl = "rsocket+tcp://h:1"\nroute = "r"\njournal = "j"\n')
    result = weirpool("top", "--config", str(path), "--json")
    assert json.loads(result.out)["states"] == {"stopped": 1}


def test_collector_without_answer_is_exit_code_3(weirpool: Weirpool, tmp_path: Path) -> None:
    result = weirpool("top", "http://127.0.0.1:1", "--once")
    assert result.code == 3
    assert_one_line(result)
    assert weirpool("top", "file:///etc/passwd").code == 2
    assert weirpool("top", "http://x", "--config", "y").code == 2
