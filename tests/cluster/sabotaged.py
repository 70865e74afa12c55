"""``python -m tests.cluster.sabotaged NAME ARGUMENT...``: the command line of the plain build, with a mistake in it."""

from __future__ import annotations

import sys

from weirpool import _build
from weirpool.cli.main import run

from .mistakes import SABOTEURS

if __name__ == "__main__":
    if not _build.PURE:
        sys.exit("compiled classes cannot be patched: set WEIRPOOL_PURE=1")
    name, *arguments = sys.argv[1:]
    (saboteur,) = (each for each in SABOTEURS if each.name == name)
    with saboteur.sabotage():
        run(arguments)
