"""The results of `weirpool bench` as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..texts import counted, shown_line

if TYPE_CHECKING:
    from ..load.histogram import Histogram
    from ..load.measured import Measured

__all__ = ["duration", "progress", "size", "table"]

MAX_ERRORS: Final = 10
"""Different errors that are listed."""
SHORT: Final = 10.0
"""Numbers below it have two decimals."""
MIDDLE: Final = 100.0
"""Numbers below it have one."""

Column = tuple[str, Callable[["Measured"], str]]


def table(results: list[Measured]) -> list[str]:
    """Return the lines of the table, and of the errors. It fits a terminal of 80 columns."""
    columns = _columns(results)
    rows = [[title for title, _ in columns], *([cell(each) for _, cell in columns] for each in results)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(columns))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines += [
        f"first item, {each.in_flight} in flight: {_summary(each.first_item)}"
        for each in results
        if each.first_item.count
    ]
    lines += _errors(results)
    # As many as may be in flight are under way when the time is over.
    late = sum(each.unfinished for each in results if each.rate and each.unfinished > each.in_flight)
    if late:
        requests = f"{counted(late, 'request')} {'was' if late == 1 else 'were'} due and had not ended"
        lines.append(f"{requests}; raise --in-flight, or lower --rate")
    if not any(each.requests or each.failed for each in results):
        lines.append("no request has ended in time; raise --duration")
    return lines


def _errors(results: list[Measured]) -> list[str]:
    """Return a line for each of the most frequent errors, with the text of the first of its kind."""
    errors: Counter[str] = sum((each.errors for each in results), Counter())
    texts = {code: text for each in results for code, text in each.texts.items()}
    lines = []
    for code, count in errors.most_common(MAX_ERRORS):
        text = f": {shown_line(texts[code])}" if texts[code] else ""
        lines.append(f"{count:,} failed with {shown_line(code)}{text}")
    if len(errors) > MAX_ERRORS:
        lines.append(f"and {len(errors) - MAX_ERRORS} other errors")
    return lines


def progress(measured: Measured, seconds: float) -> str:
    """Return one line about a round that runs."""
    rate = measured.requests / seconds if seconds > 0 else 0.0
    failed = f", {measured.failed:,} failed" if measured.failed else ""
    items = f", {measured.items:,} items" if measured.items else ""
    p99 = f", p99 {duration(measured.latency.percentile(99))}" if measured.latency.count else ""
    return (
        f"{measured.in_flight} in flight, {seconds:.0f} s, {measured.requests:,} requests, {rate:,.0f}/s"
        f"{items}{p99}{failed}"
    )


def duration(nanoseconds: float) -> str:
    """Return a duration with a unit, in at most 6 characters up to an hour."""
    for unit, factor in (("s", 1e9), ("ms", 1e6)):
        if nanoseconds >= factor:
            return f"{_short(nanoseconds / factor)}{unit}"
    return f"{nanoseconds / 1e3:.0f}us"


def size(count: float) -> str:
    """Return a number of bytes with a unit."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{_short(count / factor)}{unit}"
    return f"{count:.0f}B"


def _short(value: float) -> str:
    return f"{value:.2f}" if value < SHORT else f"{value:.1f}" if value < MIDDLE else f"{value:.0f}"


def _per_second(measured: Measured, count: int) -> str:
    rate = measured.per_second(count)
    return f"{rate:,.0f}" if rate == 0 or rate >= MIDDLE else _short(rate)


def _columns(results: list[Measured]) -> list[Column]:
    columns: list[Column] = [
        ("in flight", lambda each: f"{each.in_flight}"),
        ("req/s", lambda each: _per_second(each, each.requests)),
    ]
    if any(each.items for each in results):
        columns.append(("items/s", lambda each: _per_second(each, each.items)))
    columns.append(("data/s", lambda each: size(each.per_second(each.bytes))))
    columns += [(f"p{percent:g}", _percentile(percent)) for percent in (50.0, 90.0, 99.0, 99.9)]
    columns.append(("max", lambda each: duration(each.latency.largest) if each.latency.count else "-"))
    columns.append(("failed", lambda each: f"{each.failed:,}"))
    return columns


def _percentile(percent: float) -> Callable[[Measured], str]:
    return lambda each: duration(each.latency.percentile(percent)) if each.latency.count else "-"


def _summary(counted: Histogram) -> str:
    found = ", ".join(f"p{percent} {duration(counted.percentile(percent))}" for percent in (50, 99))
    return f"{found}, max {duration(counted.largest)}"
