"""Compile the hot modules with Cython, where that can be done; everything works without.

Every `x.py` that has an `x.pxd` beside it, and every `.pyx`, becomes an extension module. All of them are
built, or none: compiled modules look into each other. Two variables of the environment steer it:

* PENSTOCK_NO_EXTENSIONS=1: do not even try.
* PENSTOCK_REQUIRE_EXTENSIONS=1: a failure is an error, not a notice.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError, ExecError, LinkError, PlatformError

SOURCE = Path("src")
REQUIRED = os.environ.get("PENSTOCK_REQUIRE_EXTENSIONS") == "1"
BUILD_ERRORS = (CCompilerError, CompileError, ExecError, LinkError, PlatformError)

DIRECTIVES = {
    "language_level": 3,
    # Types come from the .pxd alone, so that both builds take the same arguments.
    "annotation_typing": False,
    # The sources guard every read by a length check of their own, and never index from the end.
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "binding": True,
    "freethreading_compatible": True,
}


def notice(reason: object) -> None:
    """Say that the plain build is what there will be, and why."""
    print(f"penstock: no compiled extensions, the plain Python modules serve instead ({reason})", file=sys.stderr)


def extensions() -> list[Extension]:
    """Return what is to be compiled."""
    sources = [path for path in sorted(SOURCE.rglob("*.py")) if path.with_suffix(".pxd").exists()]
    sources += sorted(SOURCE.rglob("*.pyx"))
    flags = [] if sys.platform == "win32" else ["-O3", "-Wno-unreachable-code"]
    return [
        Extension(".".join(path.relative_to(SOURCE).with_suffix("").parts), [str(path)], extra_compile_args=flags)
        for path in sources
    ]


def translated() -> list[Extension]:
    """Return the extensions as C, or none where Cython is absent or unwanted."""
    wanted = extensions()
    if os.environ.get("PENSTOCK_NO_EXTENSIONS") == "1" or not wanted:
        return []
    try:
        from Cython.Build import cythonize
        from Cython.Compiler.Errors import CompileError as CythonError
    except ImportError as error:
        if REQUIRED:
            raise
        notice(error)
        return []
    try:
        return cythonize(wanted, compiler_directives=DIRECTIVES, nthreads=2, quiet=False)
    except CythonError as error:
        if REQUIRED:
            raise
        notice(f"Cython: {error}")
        return []


class OptionalBuildExt(build_ext):
    """Build all extensions, or none."""

    def finalize_options(self) -> None:
        """Compile two at a time."""
        super().finalize_options()
        self.parallel = self.parallel or 2

    def run(self) -> None:
        """Build; where that fails, remove what was built before the failure."""
        try:
            super().run()
        except BUILD_ERRORS as error:
            if REQUIRED:
                raise
            notice(error)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


setup(ext_modules=translated(), cmdclass={"build_ext": OptionalBuildExt})
