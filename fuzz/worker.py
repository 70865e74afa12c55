"""Fuzzes one target in its own process: ``python -m fuzz.worker TARGET SECONDS SEED FOLDER``.

``python -m fuzz.worker TARGET --replay FILE`` runs one input.

The folder receives `input`, the input that runs now, and `found.txt`, inputs that reached something new. A hanging
input ends the process by a signal.
"""

from __future__ import annotations

import json
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from tests.builds import available
from tests.builds import load as load_build

import weirpool

from . import corpora
from .engine import Engine
from .sensors import Edges, Lines, Sensor
from .targets import Target, load

__all__ = ["main"]

HANG_SECONDS: Final = 20
"""Maximum time of the processor for one input, with sanitizers."""
WAIT_SECONDS: Final = 300
"""Maximum time of one input: it may wait for nothing, but the machine may be busy."""


def replay(name: str, path: Path) -> None:
    """Run one input. Raises as `Target.check` does."""
    load(name, {build: load_build(build) for build in available()}).check(path.read_bytes())
    print(f"{path.name}: passed")


def main(name: str, seconds: float, seed: str, folder: Path) -> int:
    """Fuzz a target, and return 1 if an input fails."""
    target = load(name, {build: load_build(build) for build in available()})
    current = folder / "input"
    with current.open("wb", buffering=0) as file:

        def before(data: bytes) -> None:
            signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
            signal.alarm(WAIT_SECONDS)
            file.seek(0)
            file.truncate()
            file.write(data)

        engine = Engine(target, _sensors(target), Random(f"{name} {seed}"), before)
        try:
            given = [*target.seeds(), *corpora.read(name)]
            engine.add(given)
            engine.fuzz(seconds)
        except Exception:
            traceback.print_exc()
            return 1
    (folder / "found.txt").write_text("".join(f"{data.hex()}\n" for data in engine.corpus if data not in given))
    print(json.dumps({"runs": engine.runs, "kept": len(engine.corpus)}))
    current.unlink()
    return 0


def _sensors(target: Target) -> list[Sensor]:
    """Return edges if the compiled build has coverage; and lines if it has not, or the decoder is not compiled."""
    sensors: list[Sensor] = []
    with suppress(AttributeError):
        sensors.append(Edges())
    if target.lines or not sensors:
        sensors.append(Lines(Path(weirpool.__file__).parent))
    return sensors


if __name__ == "__main__":
    if sys.argv[2] == "--replay":
        replay(sys.argv[1], Path(sys.argv[3]))
    else:
        sys.exit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3], Path(sys.argv[4])))
