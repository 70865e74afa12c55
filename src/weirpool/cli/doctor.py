"""`weirpool doctor`: what works on this machine, and what is missing."""

from __future__ import annotations

import json
import platform
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

import typer
from typer import Argument, Option

from .._build import DISTRIBUTION, pip_command
from ..errors import LocalError
from .console import say, say_json
from .exits import FAILED
from .extras import Extra, ExtraState, Package, explained, extras, required

__all__ = ["doctor"]

ROOT: Final = Path(__file__).resolve().parent.parent
MAX_NAMED: Final = 9
"""Packages of an extra to name in a line; `--json` names all."""


@dataclass
class Report:
    """What the doctor has found.

    Attributes:
        facts: The same as an object, for `--json`.
        lines: What works, and what is optional and not installed.
        problems: What is broken, each with what to do.

    """

    facts: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def doctor(
    wanted: Annotated[list[str] | None, Argument(metavar="[EXTRA]...", help="Extras that must be installed.")] = None,
    json_: Annotated[bool, Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show versions, the build in use and the optional parts; exit with 1 if something is broken.

    An optional part that is not installed is no problem, unless it is named: weirpool doctor spark.

    Example: weirpool doctor
    """
    report = Report()
    _system(report)
    _build(report)
    _package(report)
    _parts(report, wanted or [])
    if json_:
        say_json(report.facts | {"problems": report.problems}, indent=2)
    else:
        for line in (*report.lines, *(f"problem: {each}" for each in report.problems)):
            say(line)
        if not report.problems:
            say("no problems")
    if report.problems:
        raise typer.Exit(FAILED)


def _system(report: Report) -> None:
    from .. import __version__

    python, system = platform.python_version(), f"{platform.system()} {platform.machine()}"
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    # Only free-threaded interpreters can tell; all others have a GIL.
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    report.facts |= {"version": __version__, "python": python, "free_threaded": free, "gil": gil, "system": system}
    threads = f" free-threaded with the GIL {'on' if gil else 'off'}" if free else ""
    report.lines.append(f"{DISTRIBUTION} {__version__}, Python {python}{threads}, {system}")


def _build(report: Report) -> None:
    from .._build import ACCELERATED, PURE, compiled_modules

    number = len(compiled_modules())
    report.facts["build"] = {"compiled": ACCELERATED, "modules": number}
    if ACCELERATED:
        report.lines.append(f"build: compiled ({number} modules)")
    elif PURE:
        report.lines.append("build: plain Python, several times slower, because WEIRPOOL_PURE=1 is set")
    else:
        report.lines.append(
            "build: plain Python, which works but is several times slower; a wheel for this Python, or a C compiler "
            "during the installation, gives the compiled one; in a checkout: pip install --force-reinstall --no-deps ."
        )


def _package(report: Report) -> None:
    """Tell whether the imported package is the installed one, whose requirements are checked."""
    report.facts["path"] = str(ROOT)
    try:
        packages = required()
    except LocalError as error:
        report.problems.append(f"{error}; {ROOT} is imported without an installation, so its extras are unknown")
        return
    report.lines.append(f"package: {ROOT}")
    home = _home()
    if home != ROOT:
        report.problems.append(
            f"{ROOT} is imported, but another copy is installed, in {home}; "
            "leave the folder, or unset PYTHONPATH, or uninstall the other one"
        )
    report.facts["required"] = [_facts(package) for package in packages]
    report.lines.append(f"required: {_versions(packages)}")
    report.problems += [f"{each.problem}; run: {pip_command()}" for each in packages if each.problem]


def _home() -> Path:
    """Return the folder of the installed package."""
    installed = distribution(DISTRIBUTION)
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        # The sources of an editable installation lie in the folder of the project.
        return Path(url2pathname(urlsplit(origin["url"]).path), "src", DISTRIBUTION).resolve()
    return Path(str(installed.locate_file(DISTRIBUTION))).resolve()


def _parts(report: Report, wanted: list[str]) -> None:
    try:
        found = extras()
    except LocalError:
        return
    known = [extra.name for extra in found]
    for name in wanted:
        if name not in known:
            raise LocalError(f"there is no extra {name!r}; the extras are: {', '.join(known)}")
    reasons = explained(found)
    report.facts["extras"] = {}
    for extra in found:
        state = extra.state(reasons)
        report.facts["extras"][extra.name] = {
            "state": state.value,
            "packages": [_facts(package) for package in extra.packages],
            "install": extra.command,
        }
        _part(report, extra, state, extra.name in wanted)
    _java(report, found)


def _part(report: Report, extra: Extra, state: ExtraState, is_wanted: bool) -> None:
    if state == ExtraState.INSTALLED:
        report.lines.append(f"{extra.name}: {_versions(extra.packages)}")
    elif state == ExtraState.ABSENT and not is_wanted:
        report.lines.append(f"{extra.name}: not installed (optional); {extra.command}")
    else:
        report.problems.append(f"{extra.name} is {state}: {extra.problem}; run: {extra.command}")


def _java(report: Report, found: list[Extra]) -> None:
    """Look for Java if Spark is there, which needs it."""
    report.facts["java"] = None
    if not any(package.name == "pyspark" and package.found for extra in found for package in extra.packages):
        return
    from ..spark.java import ensure_java, java_version

    try:
        java = ensure_java()
    except LocalError as error:
        report.problems.append(str(error))
    else:
        report.facts["java"] = java_version(java)
        report.lines.append(f"Java: {report.facts['java']}")


def _facts(package: Package) -> dict[str, Any]:
    return {"name": package.name, "wanted": package.wanted, "found": package.found, "fits": package.fits}


def _versions(packages: Sequence[Package]) -> str:
    if len(packages) > MAX_NAMED:
        return f"{len(packages)} packages"
    return ", ".join(f"{package.name} {package.found}" for package in packages if package.found)
