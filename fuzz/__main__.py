"""``python -m fuzz``: fuzzes all decoders, and fails after a finding, whose input is in build/fuzz/findings."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from . import corpora, sanitizing
from .targets import names

FINDINGS: Final = sanitizing.WORK / "findings"
SHOWN_CHARACTERS: Final = 4_000


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", default=names(), help="the targets; all by default")
    parser.add_argument("--minutes", type=float, default=5.0, help="time of the processor, for all targets together")
    parser.add_argument("--seed", default=None, help="seed of the changes; random by default, and printed")
    parser.add_argument("--keep", action="store_true", help="add inputs that reach something new to the corpus")
    parser.add_argument("--unsanitized", action="store_true", help="use the ordinary build: faster, but finds less")
    return parser.parse_args()


def fuzz(target: str, seconds: float, options: argparse.Namespace) -> bool:
    """Fuzz one target in a process of its own; print the result, and return whether all inputs passed."""
    folder = sanitizing.WORK / "targets" / target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "fuzz.worker", target, str(seconds), options.seed, str(folder)]
    paths = os.pathsep.join((str(sanitizing.ROOT / "src"), str(sanitizing.ROOT)))
    env = os.environ | {"PYTHONPATH": paths} if options.unsanitized else sanitizing.environment()
    ended = subprocess.run(command, env=env, cwd=sanitizing.ROOT, capture_output=True, text=True)
    if ended.returncode:
        print(f"{target:16} FAILED ({ended.returncode})\n{ended.stderr[-SHOWN_CHARACTERS:]}{_saved(target, folder)}")
        return False
    result = json.loads(ended.stdout)
    kept = ""
    if options.keep:
        found = [bytes.fromhex(line) for line in (folder / "found.txt").read_text().splitlines()]
        kept = f", {corpora.add(target, found)} added to the corpus"
    print(f"{target:16} {result['runs']:8} inputs, {result['kept']:5} reached something new{kept}", flush=True)
    return True


def _saved(target: str, folder: Path) -> str:
    """Save the input that ended a process, and return a line that names it."""
    data = (folder / "input").read_bytes() if (folder / "input").exists() else b""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    path = FINDINGS / f"{target}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return f"{path.relative_to(sanitizing.ROOT)}: {data[:200].hex()}"


def main() -> int:
    """Run the command, and return 1 after a finding."""
    options = arguments()
    options.seed = options.seed or secrets.token_hex(4)
    if not options.unsanitized:
        sanitizing.make()
    seconds = options.minutes * 60 / len(options.targets)
    print(f"seed {options.seed}, {seconds:.0f} s for each of {len(options.targets)} targets", flush=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        passed = list(pool.map(lambda target: fuzz(target, seconds, options), options.targets))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
