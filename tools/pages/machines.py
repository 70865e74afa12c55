"""Diagrams of state machines as tables.

Many viewers of Markdown draw Mermaid; a browser would need its script, which is larger than the whole site.
"""

from __future__ import annotations

import re

__all__ = ["tabled"]

DIAGRAM = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TRANSITION = re.compile(r"^\s*(\S+) --> (\S+?)(?:: (.*))?$", re.MULTILINE)


def tabled(markdown: str) -> str:
    """Return a page with a table of transitions for each diagram of states: what leads from which state to which."""
    return DIAGRAM.sub(lambda found: _table(found[1]), markdown)


def _table(diagram: str) -> str:
    rows = ["| state | on | next state |", "|---|---|---|"]
    before = ""
    for state, after, cause in TRANSITION.findall(diagram):
        if state == "[*]":
            rows.append(f"| *start* | | {after} |")
        elif after == "[*]":
            rows.append(f"| {state} | | *end* |")
        else:
            rows.append(f"| {'' if state == before else state} | {cause} | {'stays' if after == state else after} |")
        before = state
    return "\n".join(rows)
