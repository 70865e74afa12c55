"""Builds what is published, reproducibly: ``python -m tools.dist [FOLDER]`` (`make dist`).

It makes a source distribution of this folder, a wheel of the source distribution for this interpreter, what the wheel
contains as a CycloneDX document, in it and beside it, and their checksums. The same sources, interpreter and compiler
give the same bytes: the time of all files is SOURCE_DATE_EPOCH, which is by default that of the last commit.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from .sbom import EARLIEST, embed

ROOT: Final = Path(__file__).parent.parent


def build(folder: Path, root: Path = ROOT) -> list[Path]:
    """Build everything into `folder`, and return the files.

    Raises:
        subprocess.CalledProcessError: The build failed; its output has the reason.

    """
    os.environ.setdefault("SOURCE_DATE_EPOCH", _last_commit(root))
    # Modes of generated files follow it, and they are packed.
    os.umask(0o022)
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(root)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    [source], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    made = [source, wheel, embed(wheel)]
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made))
    return [*made, sums]


def _last_commit(root: Path) -> str:
    """Return the time of the last commit in seconds, or a fixed one in a source distribution."""
    if not (root / ".git").exists():
        return str(EARLIEST)
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    for path in build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "dist")):
        print(path)
