"""`weirpool stream --watch`: the newest items of a stream as a live table, with their trends."""

from __future__ import annotations

import json
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..errors import LocalError
from ..texts import shown_line
from .bodies import Bodies
from .lines import paced

if TYPE_CHECKING:
    from ..aio.streams import Stream

__all__ = ["Watch", "sparkline", "watch_items"]

BARS: Final = "▁▂▃▄▅▆▇█"
TREND: Final = 24
"""Values, or seconds, that a trend shows."""
MAX_ROWS: Final = 40
MAX_COLUMNS: Final = 12
CELL_CHARACTERS: Final = 60
FRAMES_PER_SECOND: Final = 8
LINES_AROUND: Final = 7
"""Lines of the title, the head, the trends, the borders and the cursor."""


class Watch:
    """What is shown: the newest items, one column for each field of JSON objects, and how fast they arrive.

    Args:
        title: The name of the stream.
        rows: The number of items to show.

    """

    def __init__(self, title: str, rows: int) -> None:
        self._title = title
        self._rows: deque[dict[str, Any]] = deque(maxlen=max(1, min(rows, MAX_ROWS)))
        self._trends: dict[str, deque[float]] = {}
        self._rates: deque[int] = deque(maxlen=TREND)
        self._second = self._began = monotonic()
        self._in_second = 0
        self.count = 0

    def add(self, data: bytes) -> None:
        """Take an item."""
        self._tick(monotonic())
        self.count += 1
        self._in_second += 1
        fields = _fields(data)
        self._rows.append(fields)
        for name, value in fields.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                if name in self._trends or len(self._trends) < MAX_COLUMNS:
                    self._trends.setdefault(name, deque(maxlen=TREND)).append(value)

    def __rich__(self) -> Table:
        self._tick(monotonic())
        seconds = max(monotonic() - self._began, 1e-6)
        rate = f"{self.count:,} items, {self.count / seconds:,.1f}/s {sparkline(self._rates)}"
        title = Text(shown_line(f"{self._title}: {rate}"))
        # A title is as wide as its table at most.
        table = Table(title=title, title_justify="left", expand=False, min_width=title.cell_len)
        columns = list(dict.fromkeys(name for row in self._rows for name in row))[:MAX_COLUMNS]
        if not columns:
            table.add_column("no items yet")
        for name in columns:
            numeric = name in self._trends
            trend = sparkline(self._trends[name]) if numeric else ""
            head = Text(shown_line(name) + (f"\n{trend}" if self._trends else ""))
            table.add_column(head, justify="right" if numeric else "left", no_wrap=True, overflow="ellipsis")
        for row in self._rows:
            table.add_row(*(Text(_cell(row.get(name))) for name in columns))
        return table

    def _tick(self, now: float) -> None:
        """Close the seconds that have passed."""
        passed = min(int(now - self._second), TREND)
        if passed:
            self._rates.append(self._in_second)
            self._rates.extend([0] * (passed - 1))
            self._in_second = 0
            self._second = now


async def watch_items(items: Stream, title: str, bodies: Bodies, take: int | None, interval: float = 0) -> None:
    """Show the items of a stream until it ends, or until `take` of them have arrived.

    Raises LocalError if standard output is not a terminal.
    """
    console = Console()
    if not console.is_terminal:
        raise LocalError("--watch needs a terminal; leave it out to print items")
    watch = Watch(title, console.height - LINES_AROUND)
    with Live(watch, console=console, refresh_per_second=FRAMES_PER_SECOND):
        async with items:
            async for item in paced(items, interval):
                watch.add(bodies.incoming(item).data)
                if watch.count == take:
                    break


def sparkline(values: deque[float] | deque[int]) -> str:
    """Return a line of bars, from the smallest to the largest of the values."""
    if not values:
        return ""
    low, span = min(values), max(values) - min(values)
    return "".join(BARS[int((value - low) / span * (len(BARS) - 1)) if span else 0] for value in values)


def _fields(data: bytes) -> dict[str, Any]:
    """Return the fields of an item: those of a JSON object, or else all of it."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {"data": data.decode("utf-8", "replace")}
    return value if isinstance(value, dict) else {"data": value}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = shown_line(text[: CELL_CHARACTERS + 1])
    return text if len(text) <= CELL_CHARACTERS else text[: CELL_CHARACTERS - 1] + "…"
