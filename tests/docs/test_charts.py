from __future__ import annotations

import re

import pytest
from tools.pages import charts, interop

from tests.docs.pages import ROOT

TABLE = """\
| scenario | peer | faster by | ours | theirs |
|---|---|---|---|---|
| calls (`calls-64`) | `js` | 26 to 30 times | 1,500 | 0.5 |
| River | py | 10 times; 5 with types | 2.5 | 3 |
"""


def test_bars_have_the_numbers_of_the_table() -> None:
    ours, theirs, *_ = charts.bars_of(TABLE, ["ours", "theirs"])
    assert (ours.label, ours.low, ours.high, ours.text) == ("calls: js: 26 to 30 times", 1500.0, 1500.0, "1,500")
    assert (theirs.series, theirs.low) == (1, 0.5)


def test_range_is_drawn_from_its_low_to_its_high_end() -> None:
    first, second = charts.bars_of(TABLE, ["faster by"])
    assert (first.label, first.low, first.high, first.text) == (
        "calls: js",
        26.0,
        30.0,
        "26\N{EN DASH}30\N{MULTIPLICATION SIGN}",
    )
    assert (second.low, second.high, second.text) == (10.0, 10.0, "10\N{MULTIPLICATION SIGN}")


def test_cell_without_a_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="no number"):
        charts.bars_of(TABLE.replace("2.5", "-"), ["ours"])
    with pytest.raises(ValueError, match="nothing"):
        charts.bars_of(TABLE, ["nothing"])


def test_chart_is_put_before_its_table_and_names_it() -> None:
    page = charts.drawn(f"before\n\n<!-- chart: Speed <b>; ours, theirs -->\n\n{TABLE}\nafter\n")
    assert page.index("<svg") < page.index("| scenario") and TABLE in page
    assert 'role="img" aria-label="Speed &lt;b&gt;: the table has the numbers."' in page
    widths = [float(width) for width in re.findall(r'class="series-0" y="\d+" width="([\d.]+)"', page)]
    assert widths[0] == max(widths) and widths[1] == pytest.approx(1)


def test_every_chart_of_the_pages_is_drawn() -> None:
    asked = drawn = 0
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text()
        asked += text.count("<!-- chart:")
        drawn += charts.drawn(text).count('<figure class="chart">')
    assert asked == drawn > 2


def test_summary_counts_every_check_of_the_report() -> None:
    text = (ROOT / "docs/interop.md").read_text()
    counts = interop.counts(text)
    rows = [row for row in text.splitlines() if row.startswith("| `")]
    results = [cell.strip() for row in rows for cell in row.strip("|").split("|")[1:] if cell.strip()]
    assert sum(ok for ok, _ in counts.values()) == results.count("ok") > 100
    assert sum(ok + limits for ok, limits in counts.values()) == len(results)
    assert interop.summarized(text).count("<svg") == 1
