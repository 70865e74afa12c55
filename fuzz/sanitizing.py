"""A build of the extensions with ASan, UBSan and coverage, in a copy of the sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

__all__ = ["EDGES", "FLAGS", "ROOT", "WORK", "compile_library", "environment", "make"]

ROOT: Final = Path(__file__).parent.parent
WORK: Final = ROOT / "build" / "fuzz"
COPIED: Final = ("*.py", "*.pyx", "*.pxd", "py.typed")
FLAGS: Final = (
    "-fsanitize=address,undefined",
    "-fsanitize-coverage=trace-pc",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-O1",
    "-g",
)
EDGES: Final = Path(__file__).with_name("edges.c")
LIBRARY: Final = WORK / "edges.so"


def make() -> None:
    """Compile what has changed. Raises CalledProcessError if that fails."""
    _copy()
    if not LIBRARY.exists() or LIBRARY.stat().st_mtime < EDGES.stat().st_mtime:
        compile_library(EDGES, LIBRARY)
    variables = os.environ | {"WEIRPOOL_SANITIZE": " ".join(FLAGS), "WEIRPOOL_REQUIRE_EXTENSIONS": "1"}
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"], cwd=WORK, env=variables, check=True
    )


def compile_library(source: Path, library: Path, *options: str) -> None:
    """Compile C code that is loaded into Python. Raises CalledProcessError if that fails."""
    subprocess.run([_compiler(), "-O2", *options, "-shared", "-fPIC", "-o", library, source], check=True)


def environment(edges: Path = LIBRARY) -> dict[str, str]:
    """Return the environment of a process that uses this build, with `edges` loaded."""
    # Python itself is not compiled with ASan, so its runtime has to be loaded first.
    libraries = " ".join((_runtime("libasan.so"), str(edges)))
    return os.environ | {
        "PYTHONPATH": os.pathsep.join((str(WORK / "src"), str(ROOT))),
        "LD_PRELOAD": libraries,
        # Python frees little at its end. An input must not exhaust the machine's memory.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:hard_rss_limit_mb=4096",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        # Python's own allocator would hide reads behind the end of an object.
        "PYTHONMALLOC": "malloc",
        "PYTHONFAULTHANDLER": "1",
        "WEIRPOOL_REQUIRE_EXTENSIONS": "1",
    }


def _copy() -> None:
    """Copy sources that have changed, with their times, so that only those are compiled."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        WORK.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, WORK / name)
    sources = {path.relative_to(ROOT) for pattern in COPIED for path in (ROOT / "src").rglob(pattern)}
    for path in sources:
        copy = WORK / path
        if not copy.exists() or copy.stat().st_mtime != (ROOT / path).stat().st_mtime:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy)
    for copy in [copy for pattern in COPIED for copy in (WORK / "src").rglob(pattern)]:
        if copy.relative_to(WORK) not in sources:
            copy.unlink()


def _compiler() -> str:
    return os.environ.get("CC", "cc")


def _runtime(name: str) -> str:
    """Return the path of a library of the compiler."""
    found = subprocess.run([_compiler(), f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    return found.stdout.strip()
