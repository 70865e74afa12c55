"""Send saboteurs and see whether they are found: ``WEIRPOOL_PURE=1 python -m tests.saboteurs [NAME ...]``.

Without names all of them are sent. With ``-`` names are read from standard input, a line each: a saboteur's, or a
laboratory's, which then works on sound code. Each is answered by a line of JSON: the first breach that was found, or
null; and a traceback, if something fell over without a verdict. Compiled classes cannot be patched, so this needs the
plain build.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import traceback
from contextlib import closing, nullcontext
from pathlib import Path

from weirpool import _build

from .laboratories import LABORATORIES
from .saboteurs import SABOTEURS

BY_NAME = {saboteur.name: saboteur for saboteur in SABOTEURS}


def breach(name: str) -> str | None:
    """Return the first breach that is found of a saboteur, or in a laboratory without any."""
    saboteur = BY_NAME.get(name)
    laboratory = LABORATORIES[name if saboteur is None else saboteur.laboratory]
    mistake = nullcontext() if saboteur is None else saboteur.sabotage()
    with tempfile.TemporaryDirectory() as folder, mistake, closing(laboratory(Path(folder))) as found:
        return next(found, None)


def _answer(name: str) -> tuple[str | None, str]:
    try:
        return breach(name), ""
    except Exception:
        return None, traceback.format_exc()


def main(names: list[str]) -> int:
    """Return how many saboteurs were not found."""
    if not _build.PURE:
        sys.exit("compiled classes cannot be patched: set WEIRPOOL_PURE=1")
    # The mistakes make noise.
    logging.disable(logging.CRITICAL)
    if names == ["-"]:
        for line in sys.stdin:
            print(json.dumps(_answer(line.strip())), flush=True)
        return 0
    missed = 0
    for name in names or BY_NAME:
        found = breach(name)
        missed += found is None
        print(f"{name}: {found or 'NOT FOUND'}"[:160], flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
