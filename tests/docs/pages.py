"""The pages of the documentation, and their blocks of code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "blocks", "path_of"]

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block of code, as it is printed.

    Attributes:
        page: The page, relative to the repository.
        language: The word after the fence.
        text: The code.
        line: The line of the page where the code begins.

    """

    page: str
    language: str
    text: str
    line: int


def path_of(page: str) -> Path:
    """Return the file of a page."""
    return ROOT / page


def blocks(page: str, *languages: str) -> list[Block]:
    """Return the blocks of a page in some languages, or all, in order."""
    source = path_of(page).read_text()
    found = []
    for fence in FENCE.finditer(source):
        indent, language, text = fence.groups()
        if not languages or language in languages:
            text = "\n".join(line.removeprefix(indent) for line in text.split("\n"))
            found.append(Block(page, language, text, source.count("\n", 0, fence.start(3)) + 1))
    return found


PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
]
