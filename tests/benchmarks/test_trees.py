"""The sources that are compared: a revision's as it was, and the working tree's as it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from benchmarks.trees import Tree, check, revision, working

from tests.missing import need


def git(repository: Path, *arguments: str) -> None:
    """Run git as nobody in particular."""
    settings = ["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *arguments], cwd=repository, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits."""
    need("git")
    folder = tmp_path / "repository"
    package = folder / "src" / "weirpool"
    package.mkdir(parents=True)
    git(folder, "init")
    for text in ("ACCELERATED = False\n", "ACCELERATED = False  # newer\n"):
        (package / "__init__.py").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "--message", text.strip())
    return folder


def test_revision_is_taken_out_as_it_was(repository: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    tree = revision("HEAD~1", cache, repository)
    assert (tree.source / "weirpool" / "__init__.py").read_text() == "ACCELERATED = False\n"
    assert [path.name[:10] for path in cache.iterdir()] == [tree.name]


def test_revision_stays_where_it_was_built(repository: Path, tmp_path: Path) -> None:
    tree = revision("HEAD", tmp_path, repository)
    (tree.source / "built").touch()
    assert (revision("HEAD", tmp_path, repository).source / "built").exists()


def test_revision_that_is_none_is_refused(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="'nowhere' is not a revision"):
        revision("nowhere", tmp_path, repository)


def test_working_tree_is_copied_with_its_changes_and_times(repository: Path, tmp_path: Path) -> None:
    init = repository / "src" / "weirpool" / "__init__.py"
    assert " with changes" not in working(tmp_path / "clean", repository).name
    init.write_text("ACCELERATED = True\n")
    os.utime(init, (1, 1))
    tree = working(tmp_path / "changed", repository)
    copy = tree.source / "weirpool" / "__init__.py"
    assert tree.name.endswith(" with changes")
    assert (copy.read_text(), copy.stat().st_mtime) == ("ACCELERATED = True\n", 1)


def test_what_would_be_measured_is_checked(repository: Path, tmp_path: Path) -> None:
    tree = working(tmp_path / "copy", repository)
    check(tree, plain=True)
    with pytest.raises(SystemExit, match=r"expected .* True"):
        check(tree, plain=False)
    with pytest.raises(SystemExit, match="expected"):
        check(Tree("empty", tmp_path), plain=True)
