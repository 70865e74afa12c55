"""The sources to compare: copies of a revision and of the working tree, both built."""

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
    """Sources to measure.

    Attributes:
        name: Its name in results.
        folder: Its folder.

    """

    name: str
    folder: Path

    @property
    def source(self) -> Path:
        """The folder for PYTHONPATH."""
        return self.folder / "src"


def revision(name: str, folder: Path, repository: Path = ROOT) -> Tree:
    """Extract a revision of `repository` to a folder below `folder`, unless it exists there.

    Raises:
        SystemExit: The revision does not exist.

    """
    found = _git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if found.returncode:
        raise SystemExit(f"benchmarks: {name!r} is not a revision of {repository}")
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
    """Copy the sources and extensions of the working tree to `folder`, because they may change meanwhile."""
    shutil.copytree(repository / "src", folder / "src", ignore=shutil.ignore_patterns("*.c", "__pycache__"))
    commit = _git(repository, "rev-parse", "HEAD").stdout.decode().strip()[:10]
    changed = _git(repository, "status", "--porcelain", "--", "src").stdout
    return Tree(f"{commit} with changes" if changed else commit, folder)


def build(folder: Path) -> None:
    """Compile the extensions in a folder that are out of date.

    Raises:
        SystemExit: They cannot be compiled.

    """
    print(f"compiling extensions in {folder}", flush=True)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    # The compiler must not find the modules of another tree on the path.
    variables = os.environ | {"WEIRPOOL_REQUIRE_EXTENSIONS": "1", "PYTHONPATH": str(folder / "src")}
    done = subprocess.run(command, cwd=folder, env=variables)
    if done.returncode:
        raise SystemExit(f"benchmarks: {folder} cannot be compiled; --build plain needs no compiler")


def check(tree: Tree, plain: bool) -> None:
    """Check that a process imports this tree and build.

    Raises:
        SystemExit: It would import another one.

    """
    code = "import weirpool; print(weirpool.__file__, weirpool.ACCELERATED)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tree.folder, env=environment(plain, tree.source), capture_output=True, text=True)
    expected = f"{tree.source / 'weirpool' / '__init__.py'} {not plain}"
    if done.stdout.strip() != expected:
        raise SystemExit(f"benchmarks: {tree.name}: expected {expected!r}, not {done.stdout.strip()!r}{done.stderr}")


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True)
