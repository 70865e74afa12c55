"""Folders with the metadata of installed packages, as pip writes it."""

from __future__ import annotations

import json
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["EXTRAS", "REQUIRED", "ROOT", "fitting", "install", "install_weirpool", "without_metadata"]

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _names(requirements: Iterable[str]) -> list[str]:
    """Return the names of packages, those of nested extras included."""
    found: list[str] = []
    for text in requirements:
        requirement = Requirement(text)
        if requirement.name == "weirpool":
            for extra in requirement.extras:
                found += _names(PROJECT["optional-dependencies"][extra])
        else:
            found.append(canonicalize_name(requirement.name))
    return sorted(set(found))


REQUIRED: list[str] = _names(PROJECT["dependencies"])
"""The packages that are always needed."""
EXTRAS: dict[str, list[str]] = {
    name: _names(each) for name, each in PROJECT["optional-dependencies"].items() if _names(each)
}
"""The packages of each extra of pyproject.toml that has some."""


def fitting(name: str) -> str:
    """Return a version of a package that all of our requirements allow."""
    texts = [*PROJECT["dependencies"], *(text for each in PROJECT["optional-dependencies"].values() for text in each)]
    named = [each for each in map(Requirement, texts) if canonicalize_name(each.name) == name]
    lower = [part.version for each in named for part in each.specifier if part.operator == ">="]
    return max(lower, key=lambda text: [int(part) for part in text.split(".")], default="1.0")


def without_metadata(folder: Path) -> list[str]:
    """Return a search path for modules that has all packages of this interpreter, but no metadata of any.

    Args:
        folder: An empty folder, which gets links to the packages' code.

    """
    packages = {Path(place) for place in sys.path if Path(place).name in ("site-packages", "dist-packages")}
    for package in sorted(packages):
        for path in package.iterdir():
            link = folder / path.name
            if path.suffix not in (".dist-info", ".egg-info", ".pth") and not link.exists():
                link.symlink_to(path)
    library = Path(sysconfig.get_path("stdlib"))
    return [place for place in sys.path if Path(place).is_relative_to(library) and Path(place) not in packages] + [
        str(folder)
    ]


def install(folder: Path, name: str, version: str, requires: Iterable[str] = (), extras: Iterable[str] = ()) -> Path:
    """Write the metadata of an installed package, and return its folder."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {each}" for each in requires] + [f"Provides-Extra: {each}" for each in extras]
    (info / "METADATA").write_text("\n".join(lines) + "\n\n")
    return info


def install_weirpool(folder: Path, others: Mapping[str, str], *, editable: Path | None = ROOT) -> None:
    """Write the metadata of this project, and that of other packages with their versions.

    Args:
        folder: Where packages are installed, for `sys.path`.
        others: The versions of the other packages.
        editable: The project's folder, of which the installation is; None for a copy in `folder`.

    """
    requires = list(PROJECT["dependencies"])
    for extra, texts in PROJECT["optional-dependencies"].items():
        for text in texts:
            requirement, _, marker = text.partition(";")
            condition = f'({marker.strip()}) and extra == "{extra}"' if marker else f'extra == "{extra}"'
            requires.append(f"{requirement}; {condition}")
    info = install(folder, "weirpool", "0.1.0", requires, PROJECT["optional-dependencies"])
    if editable is not None:
        origin = {"dir_info": {"editable": True}, "url": editable.as_uri()}
        (info / "direct_url.json").write_text(json.dumps(origin))
    for name, version in others.items():
        install(folder, name, version)
