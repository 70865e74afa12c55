"""Selects the build: compiled extension modules, or the Python sources that they are compiled from.

With ``WEIRPOOL_PURE=1`` in the environment, every module of the package is imported from its source, even if a compiled
one exists.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Final

__all__ = ["ACCELERATED", "DISTRIBUTION", "PURE", "SourceFinder", "compiled_modules", "install", "pip_command"]

PACKAGE = __name__.partition(".")[0]
DISTRIBUTION: Final = "weirpool"
"""The name that pip knows. Nothing else is ever printed for it."""
PURE = os.environ.get("WEIRPOOL_PURE") == "1"


class SourceFinder:
    """Finds the sources of this package's modules, and hides the compiled ones."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of the source of module `name`, or raise ModuleNotFoundError; None outside this package."""
        if path is None or not name.startswith(PACKAGE + "."):
            return None
        for folder in path:
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None:
                return spec
        # After None, the next finder would return the compiled module.
        raise ModuleNotFoundError(f"module {name} has no Python source; unset WEIRPOOL_PURE to use it", name=name)


def install() -> None:
    """Apply WEIRPOOL_PURE to all later imports of this package."""
    if PURE and SourceFinder not in sys.meta_path:
        sys.meta_path.insert(0, SourceFinder)


def pip_command(extra: str = "") -> str:
    """Return the command that adds missing packages, or those of an extra, to an installation of this package."""
    return f"pip install '{DISTRIBUTION}[{extra}]'" if extra else f"pip install {DISTRIBUTION}"


def compiled_modules() -> list[str]:
    """Return the sorted names of the modules that this interpreter imports as extensions."""
    if PURE:
        return []
    root = Path(__file__).parent
    files = (path for suffix in EXTENSION_SUFFIXES for path in root.rglob(f"*{suffix}"))
    found = {
        (path.parent / path.name.partition(".")[0]).relative_to(root.parent)
        for path in files
        if "." + path.name.partition(".")[2] in EXTENSION_SUFFIXES
    }
    return sorted(".".join(path.parts) for path in found)


ACCELERATED: bool = bool(compiled_modules())
"""True if the compiled build is used."""
