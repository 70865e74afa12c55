"""What texts say about installing: this package under its own name, and only commands that work without a release."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tests.missing import need
from weirpool._build import DISTRIBUTION

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
FORMER = "pen" + "stock"
"""The name of the project before its first release. On PyPI, it belongs to somebody else."""
PIP = re.compile(r"pip install ((?:[^\s`;,\"|&]+ ?)+)")
TEXTS = ("*.md", "src/*.py", "src/*.html", "src/*.js", "examples/*", "deploy/*")


def read(*patterns: str) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each file in the repository."""
    need("git")
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        yield name, (ROOT / name).read_bytes().decode(errors="replace")


def known() -> set[str]:
    """Return the names of packages that this project requires."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    return {canonicalize_name(Requirement(text).name) for each in lists for text in each}


def wrong(text: str) -> Iterator[str]:
    """Yield words of pip commands in a text which would install a package that is neither ours nor required by us."""
    for command in PIP.findall(text):
        for word in command.replace("'", "").split():
            if word.startswith(("-", "{", ".", "dist/", "FILE", "#")):
                continue
            try:
                requirement = Requirement(word)
            except InvalidRequirement:
                break
            if requirement.name == DISTRIBUTION:
                yield from (f"{word}: no extra {each}" for each in requirement.extras - EXTRAS - {"EXTRA"})
            elif canonicalize_name(requirement.name) not in known():
                yield word


def test_distribution_has_the_name_of_the_constant() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_former_name_stands_in_one_line_of_the_changelog() -> None:
    found = [(name, line) for name, text in read() for line in text.splitlines() if FORMER in line.lower()]
    assert [name for name, _ in found] == ["CHANGELOG.md"]
    assert not [name for name, _ in read() if FORMER in name.lower()]


def test_printed_commands_install_this_package_or_one_that_it_requires() -> None:
    assert {name: found for name, text in read(*TEXTS) if (found := list(wrong(text)))} == {}


def test_package_is_not_installed_from_an_index_before_a_release() -> None:
    bare = re.compile(rf"pip install (?:-\S+ )*{DISTRIBUTION}\b(?!\[)")
    texts = dict(read("*.md"))
    found = {name: bare.findall(text) for name, text in texts.items() if bare.search(text)}
    assert found == {"docs/how-to/install.md": [f"pip install {DISTRIBUTION}"]}
    assert f"Once there is a release, `pip install {DISTRIBUTION}`" in texts["docs/how-to/install.md"]


def test_wrong_names_are_noticed() -> None:
    text = f"pip install {FORMER}; `pip install '{DISTRIBUTION}[sprak]'`, pip install --quiet pyarrow>=18 left-pad"
    assert list(wrong(text)) == [FORMER, f"{DISTRIBUTION}[sprak]: no extra sprak", "left-pad"]
