"""``python -m tools.reach``: prints how many branches of the store's packages their laboratories reach, and checks it.

A laboratory that does not reach a branch says nothing about it. Each floor is a little below what was measured: whoever
adds a branch that no laboratory reaches makes a laboratory reach it, or lowers the floor and says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
SOURCES: Final = "src/weirpool"


class Laboratory(NamedTuple):
    """Tests that search for violations, and what they are to reach."""

    packages: tuple[str, ...]
    tests: tuple[str, ...]
    floors: dict[str, int]
    """By package or module: the least percentage of branches."""


LABORATORIES: Final = (
    Laboratory(
        ("journal", "receiving"),
        ("tests/disk", "tests/journal/test_damage.py"),
        {"journal": 36, "journal/redo.py": 90, "journal/replay.py": 80, "receiving": 40, "receiving/log.py": 80},
    ),
    Laboratory(
        ("archive", "replica"),
        (
            "tests/archive/test_sealing_crashes.py",
            "tests/replica/test_group.py",
            "tests/replica/test_ownership_takeovers.py",
            "tests/replica/test_restore.py",
        ),
        {"archive": 40, "archive/sealing.py": 75, "replica": 75, "replica/ownership.py": 80, "replica/group.py": 90},
    ),
)


class Reached(NamedTuple):
    """The branches of a package or module, and how many were reached."""

    name: str
    reached: int
    branches: int
    floor: int | None = None

    @property
    def percent(self) -> float:
        """The part that was reached."""
        return 100 * self.reached / self.branches if self.branches else 100.0

    @property
    def is_low(self) -> bool:
        """Whether it is below its floor."""
        return self.floor is not None and self.percent < self.floor

    def __str__(self) -> str:
        """Return a line of the table."""
        least = "" if self.floor is None else f"  at least {self.floor}{'  TOO LOW' if self.is_low else ''}"
        return f"{self.name:30} {self.reached:5} of {self.branches:5} {self.percent:6.1f} %{least}"


def start(laboratory: Laboratory, folder: Path) -> subprocess.Popen[bytes]:
    """Start the tests of a laboratory on the plain build, with the same samples each time."""
    source = ",".join(f"{SOURCES}/{package}" for package in laboratory.packages)
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *laboratory.tests]
    return subprocess.Popen(
        [sys.executable, "-m", "coverage", "run", "--branch", f"--source={source}", *pytest],
        cwd=ROOT,
        env={"WEIRPOOL_LABS_SEED": "1", **os.environ, "WEIRPOOL_PURE": "1", "COVERAGE_FILE": str(folder / "data")},
    )


def measured(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the reached branches of each module, and all of them."""
    command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(folder / "json")]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "COVERAGE_FILE": str(folder / "data")}, check=True)
    files = json.loads((folder / "json").read_text())["files"]
    return {
        Path(name).relative_to(SOURCES).as_posix(): (
            found["summary"]["covered_branches"],
            found["summary"]["num_branches"],
        )
        for name, found in files.items()
    }


def table(laboratory: Laboratory, modules: dict[str, tuple[int, int]]) -> Iterator[Reached]:
    """Yield the rows of a laboratory: each package, and its modules."""
    for package in laboratory.packages:
        mine = {name: counts for name, counts in modules.items() if name.startswith(f"{package}/")}
        reached, branches = (sum(counts) for counts in zip(*mine.values(), strict=True))
        yield Reached(package, reached, branches, laboratory.floors.get(package))
        for name, counts in sorted(mine.items()):
            if counts[1]:
                yield Reached(name, *counts, laboratory.floors.get(name))


def main(laboratories: Sequence[Laboratory] = LABORATORIES) -> int:
    """Print the tables; return 1 if a test fails, or a floor is not reached."""
    failed = False
    with tempfile.TemporaryDirectory() as path:
        folders = [Path(path) / f"{number}" for number in range(len(laboratories))]
        for folder in folders:
            folder.mkdir()
        running = [start(each, folder) for each, folder in zip(laboratories, folders, strict=True)]
        failed = any([process.wait() for process in running])
        rows = [
            row
            for laboratory, folder in zip(laboratories, folders, strict=True)
            for row in table(laboratory, measured(folder))
        ]
    print(*rows, sep="\n")
    known = {row.name for row in rows}
    gone = [name for laboratory in laboratories for name in laboratory.floors if name not in known]
    print(*(f"{name} has a floor, and is not there" for name in gone), sep="\n", end="\n" if gone else "")
    return int(failed or bool(gone) or any(row.is_low for row in rows))


if __name__ == "__main__":
    sys.exit(main())
