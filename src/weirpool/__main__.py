"""`python -m weirpool` is the command line."""

from __future__ import annotations

from .cli.main import run

run()
