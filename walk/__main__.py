"""``python -m walk``: measure, print each number next to its limit, and fail when one has grown."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from .limits import LIMITS, Limits, excesses, load, lowered, slack, text_of
from .rows import Row, measure


def table(rows: Iterable[Row], limits: Limits, verbose: bool) -> str:
    """Return the rows as a table, with what each is made of where that is asked for."""
    lines = [f"{'':46}{'now':>8}{'limit':>8}{'goal':>8}"]
    for row in rows:
        limit, goal = (str(numbers.get(row.name, "")) for numbers in (limits.limits, limits.goals))
        lines.append(f"{row.name:46}{row.number:8}{limit:>8}{goal:>8}")
        if verbose:
            lines += [f"    {item}" for item in row.items]
    return "\n".join(lines)


def main() -> int:
    """Do what the command line says; return 1 when a number has grown."""
    parser = argparse.ArgumentParser(prog="python -m walk", description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="list what each number is made of")
    parser.add_argument("--update", action="store_true", help="lower the limits to what is measured; none is raised")
    options = parser.parse_args()
    limits = load()
    rows = measure()
    if options.update:
        limits = lowered(rows, limits)
        LIMITS.write_text(text_of(limits))
    print(table(rows, limits, options.verbose))
    lower = slack(rows, limits)
    if lower:
        print(f"\nless than the limit; run python -m walk --update: {', '.join(lower)}")
    wrong = excesses(rows, limits)
    if wrong:
        print("\n" + "\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
