from __future__ import annotations

from tools.pages.machines import tabled

from tests.docs.pages import ROOT

DIAGRAM = """\
```mermaid
stateDiagram-v2
    [*] --> NEW
    NEW --> OPENED: SETUP
    NEW --> NEW: close()
    OPENED --> [*]
```
"""


def test_diagram_becomes_a_table_of_transitions() -> None:
    assert tabled(f"before\n{DIAGRAM}after\n") == (
        "before\n| state | on | next state |\n|---|---|---|\n| *start* | | NEW |\n| NEW | SETUP | OPENED |\n"
        "|  | close() | stays |\n| OPENED | | *end* |\nafter\n"
    )


def test_every_transition_of_the_page_is_in_a_table() -> None:
    page = (ROOT / "docs/explanation/states.md").read_text()
    tables = tabled(page)
    assert "mermaid" in page and "mermaid" not in tables
    assert page.count(" --> ") == sum(line.startswith("|") for line in tables.splitlines()) - 2 * page.count(
        "```mermaid"
    )
