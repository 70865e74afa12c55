"""Parses the sources of the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

__all__ = ["PACKAGE", "Source", "read"]

PACKAGE = "weirpool"


@dataclass(frozen=True)
class Source:
    """A file of the package.

    Attributes:
        path: Its path relative to the package, such as `aio/driver.py`.
        text: Its content.

    """

    path: str
    text: str

    @property
    def module(self) -> str:
        """The dotted name below the package, such as `aio.driver`; for `__init__.py` that of the folder."""
        parts = self.path.rpartition(".")[0].split("/")
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_python(self) -> bool:
        """Whether the file is Python rather than Cython."""
        return self.path.endswith(".py")

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file."""
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree; for Cython only of the imports."""
        return ast.parse(self.text if self.is_python else "\n".join(_cimports(self.text)))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    def imports(self) -> Iterator[tuple[str, str]]:
        """Yield the module and the name of each import from the package, including those in functions.

        The name is empty if only a module is imported.
        """
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.startswith(PACKAGE + "."):
                        yield alias.name.partition(".")[2], ""
        for module, node in self.froms():
            yield from ((module, alias.name) for alias in node.names)

    def froms(self) -> Iterator[tuple[str, ast.ImportFrom]]:
        """Yield the module and the node of each `from module import names` of the package."""
        package = self.module.split(".")
        if not self.path.endswith("__init__.py"):
            package.pop()
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and (module := self._base(package, node)) is not None:
                yield module, node

    def _base(self, package: list[str], node: ast.ImportFrom) -> str | None:
        """Return the module below the package that is imported from; None for other packages."""
        if node.level:
            parts = package[: len(package) + 1 - node.level]
            return ".".join(parts + ([node.module] if node.module else []))
        first, _, rest = (node.module or "").partition(".")
        return rest if first == PACKAGE else None


def read(folder: Path) -> list[Source]:
    """Return the Python and Cython sources in the package's folder, in order of their paths."""
    paths = sorted(path for path in folder.rglob("*.p*") if path.suffix in {".py", ".pyx", ".pxd"})
    return [Source(path.relative_to(folder).as_posix(), path.read_text()) for path in paths]


def _cimports(text: str) -> Iterator[str]:
    """Yield the imports of Cython in Python's syntax."""
    for line in text.splitlines():
        match = re.match(r"(from\s+[\w.]+\s+|)c?(import\s[\w., ]+?)(\s+as\s+\w+)?$", line)
        if match:
            yield match[1] + match[2]
