"""A summary of the page of interoperability, whose tables `make interop` writes."""

from __future__ import annotations

import re

from tools.pages.charts import cells, stacked

__all__ = ["counts", "summarized"]

TABLE = re.compile(r"^\| check \|.*\n(?:\|.*\n)+", re.MULTILINE)


def counts(markdown: str) -> dict[str, list[int]]:
    """Return how many checks each peer passes, in all tables together, and how many have a known limit or fail."""
    found: dict[str, list[int]] = {}
    for table in TABLE.findall(markdown):
        header, *rows = cells(table)
        for row in rows:
            for peer, result in zip(header[1:], row[1:], strict=True):
                if result:
                    kinds = found.setdefault(peer, [0, 0])
                    kinds[result != "ok"] += 1
    return found


def summarized(markdown: str) -> str:
    """Return the page with a chart before its first section."""
    rows = list(counts(markdown).items())
    picture = stacked("Checks of each peer, over all transports", ["as specified", "a limit of the peer"], rows)
    return markdown.replace("\n## ", f"\n{picture}\n\n## ", 1)
