"""A report of results as one HTML page with charts; it refers to nothing outside itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ..texts import page_text
from .histogram import Histogram
from .measured import PERCENTILES, Measured

__all__ = ["report"]

WIDTH: Final = 720
HEIGHT: Final = 280
LEFT: Final = 70
BOTTOM: Final = 40
TOP: Final = 16
RIGHT: Final = 16
COLORS: Final = ("#1f6feb", "#d1481b", "#1a7f37", "#8250df", "#9a6700", "#bf3989", "#0a7d91", "#57606a")
TICKS: Final = 5
TAIL: Final = 5
"""Powers of ten of the longest tail: up to 99.999 %."""
STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:800px;padding:0 1rem;color:#1f2328;background:#fff}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.3rem .7rem;text-align:right;border-bottom:1px solid #d0d7de}
h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}.scroll{overflow-x:auto}
svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#57606a}svg .grid{stroke:#d8dee4}
svg .line{fill:none;stroke-width:2}.key i{display:inline-block;width:1em;height:.25em;margin:0 .4em .2em 1em}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}td,th{border-color:#30363d}
svg text{fill:#9198a1}svg .grid{stroke:#30363d}}
"""

Points = list[tuple[float, float]]
Ticks = list[tuple[float, str]]


def report(results: Sequence[Measured], title: str) -> str:
    """Return the page: a table, the distributions of latencies, and throughput over time."""
    names = [f"{each.in_flight} in flight" for each in results]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width,initial-scale=1">',
        f"<title>{page_text(title)}</title><style>{STYLE}</style>",
        f"<h1>{page_text(title)}</h1>",
        _table(results),
        "<h2>Latency by percentile, in milliseconds</h2>",
        _chart([_tail(each.latency) for each in results], _tail_ticks(), "percentile"),
        _key(names),
        "<h2>Completed requests per second over time</h2>",
        _chart([_rates(each) for each in results], None, "seconds"),
        _key(names),
    ]
    if len(results) > 1:
        points = [(float(each.in_flight), each.per_second(each.requests)) for each in results]
        parts += ["<h2>Requests per second by requests in flight</h2>", _chart([sorted(points)], None, "in flight")]
    return "".join(parts)


def _table(results: Sequence[Measured]) -> str:
    titles = ["in flight", "connections", "seconds", "requests", "requests/s", "items/s", "bytes/s"]
    titles += [f"p{percent:g} ms" for percent in PERCENTILES] + ["max ms", "failed", "errors"]
    rows = [
        [
            f"{each.in_flight}",
            f"{each.connections}",
            f"{each.seconds:.2f}",
            f"{each.requests:,}",
            f"{each.per_second(each.requests):,.0f}",
            f"{each.per_second(each.items):,.0f}",
            f"{each.per_second(each.bytes):,.0f}",
            *(f"{each.latency.percentile(percent) / 1e6:,.3f}" for percent in PERCENTILES),
            f"{each.latency.largest / 1e6:,.3f}",
            f"{each.failed:,}",
            ", ".join(f"{code}: {count:,}" for code, count in each.errors.most_common(3)),
        ]
        for each in results
    ]
    head = "".join(f"<th>{title}" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{page_text(cell)}" for cell in row) for row in rows)
    return f"<div class=scroll><table><tr>{head}{body}</table></div>"


def _tail(latency: Histogram) -> Points:
    """Return latencies over the number of nines: 1 is 90 %, 2 is 99 %."""
    points: Points = []
    seen = 0
    for value, count in latency.buckets():
        seen += count
        left = 1 - seen / latency.count
        nines = min(-math.log10(left), TAIL) if left > 0 else min(math.log10(latency.count) + 0.3, TAIL)
        points.append((nines, value / 1e6))
    return points


def _tail_ticks() -> Ticks:
    return [(math.log10(2), "50 %"), *((float(n), f"{100 - 100 / 10**n:g} %") for n in range(1, TAIL + 1))]


def _rates(measured: Measured) -> Points:
    series = measured.series
    counts = series.counts
    # The last interval is usually not complete.
    counts = counts[:-1] if len(counts) > 1 else counts
    return [((n + 0.5) * series.seconds, count / series.seconds) for n, count in enumerate(counts)]


def _chart(lines: Sequence[Points], ticks: Ticks | None, label: str) -> str:
    """Return lines in one pair of axes, both beginning at 0."""
    right = max((x for line in lines for x, _ in line), default=1.0) or 1.0
    top = max((y for line in lines for _, y in line), default=1.0) or 1.0
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role=img aria-label="{page_text(label)}">']
    for value, text in _round_ticks(top):
        y = TOP + high * (1 - value / top)
        out.append(f"<line class=grid x1={LEFT} x2={WIDTH - RIGHT} y1={y:.1f} y2={y:.1f} />")
        out.append(f"<text x={LEFT - 8} y={y + 4:.1f} text-anchor=end>{text}</text>")
    for value, text in ticks or _round_ticks(right):
        if value <= right:
            x = LEFT + wide * value / right
            out.append(f"<text x={x:.1f} y={HEIGHT - BOTTOM + 18} text-anchor=middle>{text}</text>")
    out.append(f"<text x={LEFT + wide / 2} y={HEIGHT - 4} text-anchor=middle>{page_text(label)}</text>")
    for number, line in enumerate(lines):
        places = " ".join(f"{LEFT + wide * x / right:.1f},{TOP + high * (1 - y / top):.1f}" for x, y in line)
        color = COLORS[number % len(COLORS)]
        out.append(f'<polyline class=line stroke="{color}" points="{places}" />')
        if len(line) == 1:
            across, down = places.split(",")
            out.append(f'<circle cx={across} cy={down} r=3 fill="{color}" />')
    return "".join([*out, "</svg>"])


def _round_ticks(top: float) -> Ticks:
    """Return round values from 0 to `top`."""
    step = 10 ** math.floor(math.log10(top / TICKS))
    step *= next(factor for factor in (1, 2, 5, 10) if top / (step * factor) <= TICKS)
    return [(n * step, f"{n * step:,.10g}") for n in range(int(top / step) + 1)]


def _key(names: Sequence[str]) -> str:
    """Return the names of the lines of a chart."""
    colored = (f'<i style="background:{COLORS[n % len(COLORS)]}"></i>{page_text(name)}' for n, name in enumerate(names))
    return f"<div class=key>{''.join(colored)}</div>"
