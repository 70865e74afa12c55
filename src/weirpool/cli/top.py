"""`weirpool top`: a live table of feeds and their readers."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from rich.console import Console, Group, JustifyMethod
from rich.live import Live
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from ..errors import ConnectError, LocalError
from ..texts import counted, shown_line
from .console import say_json
from .groups import grouped
from .values import duration

if TYPE_CHECKING:
    from ..feeds.status import Document, FeedStatus

__all__ = ["render", "top"]

DEFAULT_URL: Final = "http://127.0.0.1:7880"
ANSWER_SECONDS: Final = 10.0
MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
TONES: Final = {
    "live": "green",
    "complete": "green",
    "standby": "green",
    "connecting": "yellow",
    "waiting for budget": "yellow",
    "waiting for disk": "red",
    "refused": "red",
    "stopped": "red",
}
FRAME_LINES: Final = 5
"""Lines beside the rows: the summary, two headings, the note on what is not shown, and the cursor's."""
MAX_READERS: Final = 8
MAX_SERVED: Final = 4
NOTHING: Final = "-"
FLEXIBLE: Final = ("Feed", "Reader", "Reason", "URL")
"""Columns that are shortened if the terminal is narrow."""
REASON_WIDTH: Final = 90
"""The width of a terminal from which on reasons have a column. In narrower ones they are lines below the table."""
MIN_TEXT: Final = 8
"""Characters that are left of them."""
DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Collectors are in the same network: a proxy of the environment would not find localhost."""

Read = Callable[[], "Document"]


@dataclass(frozen=True, kw_only=True)
class TopOptions:
    """What to show, and how often."""

    config: Annotated[
        Path | None, Option("--config", metavar="FILE", help="Read the journals of this file of feeds instead.")
    ] = None
    once: Annotated[bool, Option("--once", help="Show the table once.")] = False
    as_json: Annotated[bool, Option("--json", help="Print the status as one JSON object.")] = False
    interval: Annotated[
        float, Option("--interval", metavar="SECONDS", parser=duration(0.1), help="Time between updates.")
    ] = 2.0


@grouped
def top(
    options: TopOptions,
    url: Annotated[str | None, Argument(help=f"The URL of --http of a collector; {DEFAULT_URL} by default.")] = None,
) -> None:
    """Show feeds and readers: rates, lags, budgets, credit and gaps, until Ctrl-C.

    Example: weirpool top http://localhost:7880 --once
    """
    if url is not None and options.config is not None:
        raise LocalError("give either a URL or --config")
    read = _from_journals(options.config) if options.config is not None else _from_server(url or DEFAULT_URL)
    if options.as_json:
        say_json(msgspec.to_builtins(read()))
        return
    console = Console()
    if options.once:
        console.print(render(read(), console.width))
        return
    with suppress(KeyboardInterrupt):
        _watch(console, read, options.interval)


def _watch(console: Console, read: Read, interval: float) -> None:
    """Show the table until Ctrl-C. The first answer must arrive; later ones may be missing for a while."""
    newest = read()
    problem = ""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(render(newest, console.width, console.height, problem), refresh=True)
            time.sleep(interval)
            try:
                newest, problem = read(), ""
            except ConnectError as error:
                problem = str(error)


def _from_server(url: str) -> Read:
    """Return a function that asks a collector for its status."""
    from ..feeds.status import Document

    if not url.startswith(("http://", "https://")):
        raise LocalError(f"{url!r} is not the URL of a collector; write one like {DEFAULT_URL}")

    def read() -> Document:
        try:
            with DIRECT.open(f"{url.rstrip('/')}/status", timeout=ANSWER_SECONDS) as response:
                return msgspec.json.decode(response.read(MAX_ANSWER_BYTES), type=Document)
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "reason", None) or error
            raise ConnectError(
                f"{url} does not answer with the status of a collector ({reason}); start it with --http"
            ) from None

    return read


def _from_journals(path: Path) -> Read:
    """Return a function that looks at the journals of a file of feeds."""
    from ..feeds.board import Board
    from ..feeds.file import load
    from ..feeds.offline import statuses

    file, board = load(path), Board()

    def read() -> Document:
        board.publish(statuses(file))
        return board.document()

    return read


def render(document: Document, width: int, height: int = 0, problem: str = "") -> Group:
    """Return what to show of a document.

    Args:
        document: The statuses.
        width: The width of the terminal; narrow ones get fewer columns.
        height: Its height, which limits the number of rows; 0: all are shown, and each reason in full.
        problem: Why there is no newer document.

    """
    states = ", ".join(f"{count} {state}" for state, count in document.states.items()) or "no feeds"
    summary = Text(f"{time.strftime('%H:%M:%S', time.localtime(document.time))}  {states}")
    if not document.healthy:
        summary.append("; the collector does not answer", "bold red")
    for wrong in filter(None, (document.problem, problem)):
        summary.append(f"; {shown_line(wrong)}", "bold red")
    readers = document.readers[:MAX_READERS] if height else document.readers
    served = document.served[:MAX_SERVED] if height else document.served
    lines = FRAME_LINES + len(readers) + (len(served) + 1 if served else 0)
    below = not height or width < REASON_WIDTH
    feeds = _fitting(document.feeds, height - lines, below) if height else document.feeds
    columns = [column for column, least in FEEDS if width >= least and not (below and column is REASON)]
    parts: list[Any] = [summary, _table(columns, feeds, width)]
    if below:
        parts += [_reason_line(feed, bool(height)) for feed in feeds if feed.reason or feed.problem]
    if len(feeds) < len(document.feeds):
        rest = counted(len(document.feeds) - len(feeds), "more feed")
        parts.append(Text(f"and {rest}; --once shows all", "dim"))
    if readers:
        parts.append(_table(READERS, readers, width))
    if served:
        parts.append(_table(SERVED, served, width))
    return Group(*parts)


def _fitting(feeds: list[FeedStatus], room: int, below: bool) -> list[FeedStatus]:
    """Return the feeds for which there is room, the most urgent ones if not for all; `below`: reasons need lines."""
    needed = {feed.name: 1 + (below and bool(feed.reason or feed.problem)) for feed in feeds}
    if sum(needed.values()) <= room:
        return feeds
    urgent = sorted(feeds, key=_urgency)
    ends = accumulate(needed[feed.name] for feed in urgent)
    return [feed for feed, end in zip(urgent, ends, strict=True) if end <= room] or urgent[:1]


def _reason_line(feed: FeedStatus, shorten: bool) -> Text:
    """Return a feed's name and reason, for a line of their own."""
    line = Text(no_wrap=shorten, overflow="ellipsis" if shorten else None)
    return line.append(f"{shown_line(feed.name)}: ").append_text(_reasons(feed))


def _urgency(feed: FeedStatus) -> tuple[int, int, str]:
    """Return the key that sorts feeds with problems first, then those with the largest lag."""
    tone = TONES[feed.state]
    return (
        ("red", "yellow", "green").index(tone),
        -max((lag.rows for lag in feed.readers.values()), default=0),
        feed.name,
    )


def _table(columns: Columns, items: Any, width: int) -> Table:
    table = Table(box=None, pad_edge=False)
    rows = [[cell(item) for _, cell, _ in columns] for item in items]
    needed = [max(len(title), *(row[n].cell_len for row in rows), 0) for n, (title, _, _) in enumerate(columns)]
    for (title, _, is_text), size in zip(
        columns, _fitted([title for title, _, _ in columns], needed, width), strict=True
    ):
        side: JustifyMethod = "left" if is_text else "right"
        table.add_column(title, justify=side, no_wrap=True, overflow="ellipsis", width=size)
    for row in rows:
        table.add_row(*row)
    return table


def _fitted(titles: list[str], needed: list[int], width: int) -> list[int]:
    """Return the widths of columns. Numbers are useless in part: long names and reasons give way, the longest first."""
    sizes = list(needed)
    # Rich would shrink all columns alike, down to nothing.
    room = width - 2 * (len(titles) - 1) - sum(needed[n] for n, title in enumerate(titles) if title not in FLEXIBLE)
    flexible = sorted((needed[n], n) for n, title in enumerate(titles) if title in FLEXIBLE)
    for done, (size, number) in enumerate(flexible):
        sizes[number] = min(size, max(MIN_TEXT, room // (len(flexible) - done)))
        room -= sizes[number]
    return sizes


def _count(value: float | None) -> Text:
    return Text(NOTHING if value is None else f"{value:,.0f}")


def _size(value: int | None) -> Text:
    if value is None:
        return Text(NOTHING)
    size, units = float(value), iter(("B", "KiB", "MiB", "GiB"))
    for unit in units:
        if size < 1024:
            return Text(f"{size:.0f} {unit}")
        size /= 1024
    return Text(f"{size:.1f} TiB")


def _age(value: float | None) -> Text:
    if value is None:
        return Text(NOTHING)
    for limit, divisor, unit in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if value < limit:
            return Text(f"{value / divisor:.0f} {unit}")
    return Text(f"{value / 86_400:.0f} d")


def _rows_behind(feed: FeedStatus) -> int | None:
    return max((lag.rows for lag in feed.readers.values()), default=None)


def _longest_lag(feed: FeedStatus) -> float | None:
    from ..feeds.status import longest

    return longest(feed.readers.values())


def _reasons(feed: FeedStatus) -> Text:
    texts: Iterator[str] = (text for text in dict.fromkeys((feed.reason, feed.problem)) if text)
    return Text(shown_line(" ".join(texts)), "dim")


Columns = list[tuple[str, Callable[[Any], Text], bool]]
"""Columns: the title, a function that returns the cell of an item, and whether it is a text."""

REASON: Final = ("Reason", _reasons, True)
FEEDS: Final[list[tuple[tuple[str, Callable[[Any], Text], bool], int]]] = [
    # The column, and the width of the terminal from which on it is shown.
    (("Feed", lambda feed: Text(shown_line(feed.name)), True), 0),
    (("State", lambda feed: Text(str(feed.state), TONES[feed.state]), True), 0),
    (("Rows/s", lambda feed: _count(feed.rate), False), 0),
    (("Lag", lambda feed: _count(_rows_behind(feed)), False), 0),
    (("Lag time", lambda feed: _age(_longest_lag(feed)), False), 60),
    (("Budget left", lambda feed: _size(feed.budget_free), False), 76),
    (("Credit", lambda feed: _count(feed.credit), False), 90),
    (("Gaps", lambda feed: Text(f"{feed.gaps:,}", "red" if feed.gaps else ""), False), 76),
    (("Reconnects", lambda feed: _count(feed.reconnects), False), 110),
    (("Position", lambda feed: _count(feed.position), False), 110),
    (REASON, REASON_WIDTH),
]
READERS: Final[Columns] = [
    ("Reader", lambda reader: Text(shown_line(reader.reader)), True),
    ("Feeds", lambda reader: _count(reader.feeds), False),
    ("Lag", lambda reader: _count(reader.rows), False),
    ("Longest lag", lambda reader: _age(reader.seconds), False),
]
SERVED: Final[Columns] = [
    ("Served journal", lambda served: Text(shown_line(served.name)), True),
    ("Connections", lambda served: _count(served.connections), False),
    ("URL", lambda served: Text(shown_line(served.url)), True),
]
