"""Sources to compare: those of a revision, and those of the working tree, both built where nobody changes them."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from .processes import ROOT, environment

__all__ = ["Tree", "build", "check", "revision", "working"]


@dataclass(frozen=True)
class Tree:
    """Sources that can be measured.

    Attributes:
        name: What results call it.
        folder: Where it is.

    """

    name: str
    folder: Path

    @property
    def source(self) -> Path:
        """What goes into PYTHONPATH."""
        return self.folder / "src"


def revision(name: str, folder: Path, repository: Path = ROOT) -> Tree:
    """Take the sources of a revision out of `repository`, into a folder below `folder`; once there, they stay.

    Raises:
        SystemExit: There is no such revision.

    """
    found = _git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if found.returncode:
        raise SystemExit(f"benchmarks: {name!r} is no revision of {repository}")
    commit = found.stdout.decode().strip()
    tree = Tree(commit[:10], folder / commit)
    if not tree.folder.exists():
        archive = _git(repository, "archive", commit).stdout
        fresh = folder / f"{commit}.{os.getpid()}"
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(fresh, filter="data")
        fresh.rename(tree.folder)
    return tree


def working(folder: Path, repository: Path = ROOT) -> Tree:
    """Copy the sources of the working tree, with what was built of them, into `folder`: they may change meanwhile."""
    shutil.copytree(repository / "src", folder / "src", ignore=shutil.ignore_patterns("*.c", "__pycache__"))
    commit = _git(repository, "rev-parse", "HEAD").stdout.decode().strip()[:10]
    changed = _git(repository, "status", "--porcelain", "--", "src").stdout
    return Tree(f"{commit} with changes" if changed else commit, folder)


def build(folder: Path) -> None:
    """Compile what is stale in a folder with sources.

    Raises:
        SystemExit: It cannot be compiled.

    """
    print(f"compiling what is stale in {folder}", flush=True)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, env=os.environ | {"PENSTOCK_REQUIRE_EXTENSIONS": "1"})
    if done.returncode:
        raise SystemExit(f"benchmarks: {folder} cannot be compiled; --build plain needs no compiler")


def check(tree: Tree, plain: bool) -> None:
    """See that a process which is to measure this tree and build does so.

    Raises:
        SystemExit: It would measure something else.

    """
    code = "import penstock; print(penstock.__file__, penstock.ACCELERATED)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tree.folder, env=environment(plain, tree.source), capture_output=True, text=True)
    expected = f"{tree.source / 'penstock' / '__init__.py'} {not plain}"
    if done.stdout.strip() != expected:
        raise SystemExit(f"benchmarks: {tree.name}: expected {expected!r}, not {done.stdout.strip()!r}{done.stderr}")


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True)
