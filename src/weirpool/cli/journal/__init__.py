"""`weirpool journal`: inspects, copies and repairs journals, and manages their readers."""

from __future__ import annotations

import typer

from .checks import repair, verify
from .listing import ls
from .readers import forget, lag, readers, seek
from .rows import dump, tail
from .storage import cp, seal, trim

__all__ = ["app"]

app = typer.Typer(help="Inspect, copy and repair a journal, and manage its readers.")
for verb in (ls, tail, dump, lag, readers, seek, forget, trim, seal, cp, verify, repair):
    app.command()(verb)
