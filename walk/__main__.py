"""``python -m walk``: prints each metric with its limit, and fails if one exceeds its limit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from .limits import LIMITS, Limits, excesses, load, lowered, slack, text_of
from .rows import SRC, Row, measure
from .sizes import rooms, sizes, splinters
from .sources import PACKAGE, Source, read


def table(rows: Iterable[Row], limits: Limits, verbose: bool) -> str:
    """Return the rows as a table, with their items if `verbose`."""
    lines = [f"{'':46}{'now':>8}{'limit':>8}{'goal':>8}"]
    for row in rows:
        limit, goal = (str(numbers.get(row.name, "")) for numbers in (limits.limits, limits.goals))
        lines.append(f"{row.name:46}{row.number:8}{limit:>8}{goal:>8}")
        if verbose:
            lines += [f"    {item}" for item in row.items]
    return "\n".join(lines)


def report(sources: list[Source], verbose: bool) -> str:
    """Return the sizes of the whole, which have no limit: one would refuse the next change, whatever its quality.

    If `verbose`, also those of each folder, and small modules that may be a part of another.
    """
    lines = [f"{name:46}{number:8,}" for name, number in sizes(sources).items()]
    if verbose:
        lines += [f"    {path}" for path in splinters(sources)]
        lines += [f"{room:46}{modules:8,} modules{size:8,} lines" for room, (modules, size) in rooms(sources).items()]
    return "\n".join(lines)


def main() -> int:
    """Run the command, and return 1 if a metric exceeds its limit."""
    parser = argparse.ArgumentParser(prog="python -m walk", description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="list the items of each metric")
    parser.add_argument("--update", action="store_true", help="lower the limits to the measured values")
    options = parser.parse_args()
    limits = load()
    sources = read(SRC / PACKAGE)
    rows = measure(sources)
    if options.update:
        limits = lowered(rows, limits)
        LIMITS.write_text(text_of(limits))
    print(table(rows, limits, options.verbose))
    print(report(sources, options.verbose))
    lower = slack(rows, limits)
    if lower:
        print(f"\nbelow the limit; run python -m walk --update: {', '.join(lower)}")
    wrong = excesses(rows, limits)
    if wrong:
        print("\n" + "\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
