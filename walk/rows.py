"""The metrics: a number for each row, and its items."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from .circles import circles, graph
from .names import protocols_named
from .shape import chains, driver_casts, long_files, long_functions, named, raised_hooks, sniffed_sessions
from .sizes import repeated_classes, repeated_modules
from .sources import Source

__all__ = ["Row", "code_rows", "measure", "trace", "trip_rows"]

ROOT: Final = Path(__file__).parent.parent
SRC: Final = ROOT / "src"
TRACE_SECONDS: Final = 120.0
TAPPED: Final = "RSocket, tapped"
"""The name of RSocket's walk with a tap on both sides."""
NAMES: Final = ("Connection", "Inbound", "Acceptor")
"""Names that should have one meaning each."""


@dataclass(frozen=True)
class Row:
    """A metric, which must not grow.

    Attributes:
        name: Its name.
        number: Its value.
        items: The items that it counts, if they are known.

    """

    name: str
    number: int
    items: list[str] = field(default_factory=list)


def measure(sources: list[Source]) -> list[Row]:
    """Measure all rows. `sources` are those of the package.

    Raises:
        RuntimeError: A call could not be traced.

    """
    return trip_rows(trace(SRC)) + code_rows(sources)


def trip_rows(walks: dict[str, Any]) -> list[Row]:
    """Return the rows of traced calls from the result of `trace`."""
    walks = dict(walks)
    tapped = walks.pop(TAPPED)
    rows = [
        Row(f"{protocol}: files, {trip}", len(files), files)
        for protocol, walk in walks.items()
        for trip, files in walk["files"].items()
    ]
    rows += [Row(f"{protocol}: changes of file, whole call", walk["changes"]) for protocol, walk in walks.items()]
    rows += [Row(f"{protocol}: functions called, whole call", walk["calls"]) for protocol, walk in walks.items()]
    return [*rows, Row("RSocket: functions called for a tap", tapped["calls"] - walks["RSocket"]["calls"])]


def code_rows(sources: list[Source]) -> list[Row]:
    """Return the rows that are computed only from the sources."""
    python = [source for source in sources if source.is_python]
    found = circles(graph(sources))
    chain = chains(sources)[0]
    return [
        Row("import circles", len(found), [", ".join(circle) for circle in found]),
        Row("modules in import circles", sum(map(len, found))),
        Row("depth of inheritance", len(chain), [" -> ".join(chain)]),
        _listed("files above the waist that name a protocol", protocols_named(sources)),
        *(_listed(f"types named {name}", places) for name, places in named(python, NAMES).items()),
        _listed("casts to Driver", [place for source in python for place in driver_casts(source)]),
        _listed("NotImplementedError raised", [place for source in python for place in raised_hooks(source)]),
        _listed("sessions asked what they are", [place for source in python for place in sniffed_sessions(source)]),
        _listed("functions over 40 lines", [place for source in python for place in long_functions(source)]),
        _listed("files over 1,000 lines", long_files(sources)),
        _listed("names of several modules", repeated_modules(sources)),
        _listed("names of several classes", repeated_classes(sources)),
    ]


def _listed(name: str, items: list[str]) -> Row:
    return Row(name, len(items), items)


def trace(src: Path) -> dict[str, Any]:
    """Trace calls of the package in `src`, in a separate process on the plain build.

    Raises:
        RuntimeError: The calls could not be traced.

    """
    path = os.pathsep.join([str(src), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "walk.calls"],
        cwd=ROOT,
        env=os.environ | {"WEIRPOOL_PURE": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=TRACE_SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"the calls could not be traced:\n{done.stderr}")
    walks: dict[str, Any] = json.loads(done.stdout)
    return walks
