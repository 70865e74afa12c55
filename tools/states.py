"""``python -m tools.states``: writes docs/explanation/states.md from the tables of transitions in the sources.

A state machine is an `IntEnum`. Each module of `MODULES` has a table `TRANSITIONS` for one or several machines, which
maps a state and a cause to the next state.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from importlib import import_module
from pathlib import Path

MODULES = (
    ("RSocket", "weirpool.rsocket.lifecycle"),
    ("RSocket", "weirpool.rsocket.link"),
    ("reactive-streams-io", "weirpool.reactivestreams.lifecycle"),
    ("River", "weirpool.river.states"),
)
"""The protocol family, and a module with its tables."""
PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "states.md"
HEAD = """\
# States of sessions and links

This page is generated from the tables in the sources: run `python -m tools.states` after a change. An arrow names the
cause of a transition. A session outlives its links, so both have states of their own.
"""


def machines(module: str) -> Iterator[tuple[type[IntEnum], dict[tuple[IntEnum, str], IntEnum]]]:
    """Yield each machine of a module with the rows of its table."""
    tables: dict[type[IntEnum], dict[tuple[IntEnum, str], IntEnum]] = {}
    for (state, cause), after in import_module(module).TRANSITIONS.items():
        tables.setdefault(type(state), {})[state, cause] = after
    yield from tables.items()


def diagram(machine: type[IntEnum], table: dict[tuple[IntEnum, str], IntEnum]) -> Iterator[str]:
    """Yield the lines of a machine's diagram. A state without transitions to others is final."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {next(iter(machine)).name}"
    for (state, cause), after in table.items():
        yield f"    {state.name} --> {after.name}: {cause}"
    for state in machine:
        if not any(before is state for before, _ in table):
            yield f"    {state.name} --> [*]"
    yield "```"


def page() -> str:
    """Return the page."""
    lines = [HEAD]
    for family, module in MODULES:
        for machine, table in machines(module):
            title = machine.__name__.removesuffix("State").lower()
            lines += [f"## {family}: {title}", "", *(machine.__doc__ or "").splitlines(), ""]
            lines += [*diagram(machine, table), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
