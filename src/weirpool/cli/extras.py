"""The optional parts of the installed package: their requirements, and what is there of them."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions, version
from typing import TYPE_CHECKING, Final

from .._build import DISTRIBUTION, pip_command
from ..errors import LocalError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

__all__ = [
    "Extra",
    "ExtraState",
    "Package",
    "explained",
    "extra_of",
    "extras",
    "missing_text",
    "need",
    "required",
]

DEVELOPMENT: Final = "dev"
"""The extra for those who work on the package itself."""
MAX_REQUIREMENTS: Final = 4_096
"""Requirements to remember: each extra looks at all of them."""
NAMES: Final = {
    "google": "protobuf",
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "opentelemetry": "opentelemetry-api",
    "yaml": "pyyaml",
}
"""Packages of extras that are imported under another name than that of their distribution."""


@dataclass(frozen=True, slots=True)
class Package:
    """A required package, and which version of it is installed.

    Attributes:
        name: The distribution's name.
        wanted: The versions that fit, such as ``>=18``.
        found: The installed version, or None.
        fits: True if the installed version is one of `wanted`.

    """

    name: str
    wanted: str
    found: str | None
    fits: bool

    @property
    def problem(self) -> str:
        """What is wrong with it, or an empty string."""
        if self.fits:
            return ""
        return f"{self.name} is missing" if self.found is None else f"{self.name} {self.found} is not {self.wanted}"


class ExtraState(StrEnum):
    """How much of an extra is there."""

    INSTALLED = "installed"
    ABSENT = "not installed"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True)
class Extra:
    """An extra of the installed package.

    Attributes:
        name: Its name, as in ``pip install 'weirpool[EXTRA]'``.
        packages: What it installs, including other extras.

    """

    name: str
    packages: tuple[Package, ...]

    @property
    def command(self) -> str:
        """The command that installs it."""
        return pip_command(self.name)

    @property
    def problem(self) -> str:
        """What is missing, or has a version that does not fit, or an empty string."""
        missing = [package.name for package in self.packages if package.found is None]
        unfit = [package.problem for package in self.packages if package.found is not None and not package.fits]
        verb = "is" if len(missing) == 1 else "are"
        return ", ".join(([f"{', '.join(missing)} {verb} missing"] if missing else []) + unfit)

    @property
    def is_installed(self) -> bool:
        """True if all of its packages are there, in versions that fit."""
        return all(package.fits for package in self.packages)

    def state(self, explained: frozenset[str]) -> ExtraState:
        """Return how much of it is there.

        Half of an extra is incomplete, but only if somebody seems to have wanted it: many packages are there for other
        reasons.

        Args:
            explained: Names of packages that are installed for other reasons.

        """
        if self.is_installed:
            return ExtraState.INSTALLED
        there = [package.name for package in self.packages if package.found is not None]
        wanted = 2 * len(there) >= len(self.packages) and not explained.issuperset(there)
        return ExtraState.INCOMPLETE if wanted else ExtraState.ABSENT


def required() -> list[Package]:
    """Return the packages without which nothing works. Raises LocalError if the package is not installed."""
    return [_package(each) for each in _requirements("")]


def extras() -> list[Extra]:
    """Return all extras that install something. Raises LocalError if the package is not installed."""
    names = _installed().metadata.get_all("Provides-Extra") or []
    found = (Extra(name, tuple(_package(each) for each in _requirements(name))) for name in names)
    return [extra for extra in found if extra.packages]


def explained(found: list[Extra]) -> frozenset[str]:
    """Return the names of packages that are installed for other reasons than an extra that is not complete.

    Another package requires them, or an extra that is complete.
    """
    ours = {package.name for extra in found if extra.is_installed for package in extra.packages}
    others = (each for each in distributions() if _canonical(each.metadata["Name"] or "") != DISTRIBUTION)
    theirs = {_canonical(each.name) for other in others for each in _applying(other, "")}
    return frozenset(ours | theirs)


def extra_of(module: str) -> str | None:
    """Return the smallest extra that installs a module; an empty string if the package itself requires it, else None.

    Raises LocalError if the package is not installed.
    """
    top = module.partition(".")[0]
    name = _canonical(NAMES.get(top, top))
    if any(package.name == name for package in required()):
        return ""
    fitting = [each for each in extras() if each.name != DEVELOPMENT and any(p.name == name for p in each.packages)]
    return min(fitting, key=lambda extra: len(extra.packages)).name if fitting else None


def need(name: str, purpose: str) -> None:
    """Raise LocalError with the command that helps if an extra is not complete; without an installation, do nothing."""
    try:
        extra = next((each for each in extras() if each.name == name), None)
    except LocalError:
        return
    if extra is not None and not extra.is_installed:
        raise LocalError(f"{purpose} needs more packages: {extra.problem}; run: {extra.command}")


def missing_text(error: ModuleNotFoundError) -> str:
    """Return what to tell somebody about a module that is missing: what to install."""
    if f"{DISTRIBUTION}[" in str(error):
        return str(error)
    module = str(error.name).partition(".")[0]
    if module in sys.stdlib_module_names:
        return f"{error}, which this needs, in Python on {platform.system()}; use Linux, macOS or WSL"
    package = NAMES.get(module, module)
    try:
        extra = extra_of(module)
    except LocalError:
        return f"the package {package} is missing; run: pip install {package}"
    except ModuleNotFoundError:
        # The package that reads requirements is itself required.
        extra = ""
    if extra is None:
        return f"{error}; neither {DISTRIBUTION} nor one of its extras installs it"
    return f"the package {package} is missing; run: " + pip_command(extra)


def _package(requirement: Requirement) -> Package:
    from packaging.version import InvalidVersion

    name = _canonical(requirement.name)
    try:
        found = version(name)
    except PackageNotFoundError:
        return Package(name, str(requirement.specifier), None, False)
    try:
        fits = requirement.specifier.contains(found, prereleases=True)
    except InvalidVersion:
        fits = False
    return Package(name, str(requirement.specifier), found, fits)


def _requirements(extra: str) -> list[Requirement]:
    """Return the requirements of an extra, or those without one, in order; other extras are resolved."""
    found: dict[str, Requirement] = {}
    for each in _applying(_installed(), extra):
        if _canonical(each.name) == DISTRIBUTION:
            found |= {part.name: part for inner in sorted(each.extras) for part in _requirements(inner)}
        else:
            found[each.name] = each
    return sorted(found.values(), key=lambda each: each.name.lower())


def _applying(package: Distribution, extra: str) -> Iterator[Requirement]:
    """Yield the requirements of a package that apply here with an extra, and not without it."""
    for text in package.requires or ():
        requirement, always = _parsed(text)
        if requirement is None or (always and extra) or (not always and extra not in text):
            continue
        if always or (extra and requirement.marker is not None and requirement.marker.evaluate({"extra": extra})):
            yield requirement


@lru_cache(MAX_REQUIREMENTS)
def _parsed(text: str) -> tuple[Requirement | None, bool]:
    """Return a requirement, and whether it applies here without an extra; None if it is malformed."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None, False
    return requirement, requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def _installed() -> Distribution:
    try:
        return distribution(DISTRIBUTION)
    except PackageNotFoundError:
        raise LocalError(f"{DISTRIBUTION} is not installed; run in its checkout: pip install .") from None


def _canonical(name: str) -> str:
    from packaging.utils import canonicalize_name

    return canonicalize_name(name)
