"""Charts of tables in the pages, as SVG.

A comment before a table, ``<!-- chart: TITLE; COLUMN, COLUMN -->``, names the columns to draw. The chart has the
numbers of the table, so they cannot differ, and the table says to everybody what the chart shows. A cell such as
`26 to 30 times` is drawn as a range.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

__all__ = ["Bar", "bars_of", "cells", "chart", "drawn", "stacked"]

MARKER = re.compile(
    r"^<!-- chart: (?P<title>[^;\n]+); (?P<columns>[^\n]+?) -->\n\n(?P<table>(?:\|.*\n)+)", re.MULTILINE
)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
WIDTH, LABEL, BAR, GAP = 400, 17, 14, 8
ROOM = 62
"""The width that the value at the end of a bar needs."""


@dataclass(frozen=True)
class Bar:
    """One value of one row: from `low` to `high`, which are equal unless the table has a range."""

    label: str
    series: int
    low: float
    high: float
    text: str


def drawn(markdown: str) -> str:
    """Return a page with the charts that its comments ask for, each before its table."""

    def picture(found: re.Match[str]) -> str:
        columns = [name.strip() for name in found["columns"].split(",")]
        return f"{chart(found['title'], columns, bars_of(found['table'], columns))}\n\n{found['table']}"

    return MARKER.sub(picture, markdown)


def cells(table: str) -> list[list[str]]:
    """Return the cells of a table in Markdown: its header, and its rows."""
    header, _, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]
    return [header, *rows]


def bars_of(table: str, columns: list[str]) -> list[Bar]:
    """Return the bars of a table, row by row. The columns before the first of `columns` have the labels.

    Raises:
        ValueError: A column is not in the table, or has a cell without a number.

    """
    header, *rows = cells(table)
    bars = []
    for row in rows:
        label = re.sub(r"[`*]| \(`[^)]*`\)", "", ": ".join(row[: header.index(columns[0])]))
        for series, name in enumerate(columns):
            cell = row[header.index(name)]
            numbers = [float(number.replace(",", "")) for number in NUMBER.findall(cell.partition(";")[0])[:2]]
            if not numbers:
                raise ValueError(f"no number in {cell!r}, column {name!r}")
            text = re.sub(
                r" times?$", "\N{MULTIPLICATION SIGN}", re.sub(r" to ", "\N{EN DASH}", cell.partition(";")[0])
            )
            bars.append(Bar(label, series, numbers[0], numbers[-1], text))
    return bars


def chart(title: str, columns: list[str], bars: list[Bar]) -> str:
    """Return a chart of bars, grouped by their labels."""
    most = max(bar.high for bar in bars)
    scale = (WIDTH - ROOM) / most
    parts, y, label = list[str](), legend_height(columns), ""
    for bar in bars:
        if bar.label != label:
            y += GAP if label else 0
            label = bar.label
            parts.append(f'<text x="0" y="{y + 12}">{escape(label)}</text>')
            y += LABEL
        width = max(bar.high * scale, 1)
        parts.append(f'<rect class="series-{bar.series}" y="{y}" width="{width:.1f}" height="{BAR - 2}" rx="2"/>')
        if bar.low != bar.high:
            parts.append(f'<path class="from" d="M{bar.low * scale:.1f} {y}v{BAR - 2}"/>')
        parts.append(f'<text class="value" x="{width + 5:.1f}" y="{y + 10}">{escape(bar.text)}</text>')
        y += BAR
    return figure(title, [*legend(columns), *parts], y + 4)


def stacked(title: str, columns: list[str], rows: list[tuple[str, list[int]]]) -> str:
    """Return a chart of rows of counts, each drawn as parts of one bar."""
    scale = (WIDTH - ROOM) / max(sum(counts) for _, counts in rows)
    parts, y = list[str](), legend_height(columns)
    for label, counts in rows:
        parts.append(f'<text x="0" y="{y + 12}">{escape(label)}</text>')
        x, y = 0.0, y + LABEL
        for series, count in enumerate(counts):
            if count:
                width = count * scale
                parts.append(
                    f'<rect class="series-{series}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR - 2}" rx="2"/>'
                )
                x += width
        value = " + ".join(str(count) for count in counts if count)
        parts.append(f'<text class="value" x="{x + 5:.1f}" y="{y + 10}">{value}</text>')
        y += BAR + GAP
    return figure(title, [*legend(columns), *parts], y)


def legend_height(columns: list[str]) -> int:
    """Return the height of the legend, which charts of one column do not have."""
    return 24 if len(columns) > 1 else 0


def legend(columns: list[str]) -> list[str]:
    """Return the squares with the names of the columns."""
    if len(columns) < 2:
        return []
    parts, x = list[str](), 0
    for series, name in enumerate(columns):
        parts.append(f'<rect class="series-{series}" x="{x}" y="1" width="11" height="11" rx="2"/>')
        parts.append(f'<text x="{x + 17}" y="11">{escape(name)}</text>')
        x += 40 + 7 * len(name)
    return parts


def figure(title: str, parts: list[str], height: int) -> str:
    """Return the SVG in a figure with its title."""
    return (
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}: the table has the numbers.">'
        f"{''.join(parts)}</svg></figure>"
    )
