"""Compile the hot modules with Cython, where that can be done, and pack sources reproducibly.

Everything works without compiled modules.

Every `x.py` that has an `x.pxd` beside it, and every `.pyx`, becomes an extension module. All of them are
built, or none: compiled modules look into each other. Variables of the environment steer it:

* WEIRPOOL_NO_EXTENSIONS=1: do not even try.
* WEIRPOOL_REQUIRE_EXTENSIONS=1: a failure is an error, not a notice.
* WEIRPOOL_SANITIZE=FLAGS: more flags of the compiler, those with -fsanitize= also of the linker. For `make fuzz`.
* SOURCE_DATE_EPOCH=SECONDS: the time of all files in a source distribution, which is the same in every build then.
"""

from __future__ import annotations

import gzip
import os
import sys
import tarfile
from itertools import count, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from setuptools.errors import CCompilerError, CompileError, ExecError, LinkError, PlatformError

SOURCE = Path("src")
SHARED = "weirpool._shared"
"""The extension that holds what Cython would else write into every one of them; it halves the time to compile."""
REQUIRED = os.environ.get("WEIRPOOL_REQUIRE_EXTENSIONS") == "1"
BUILD_ERRORS = (ImportError, CCompilerError, CompileError, ExecError, LinkError, PlatformError)

DIRECTIVES = {
    "language_level": 3,
    # Types come from the .pxd alone, so that both builds take the same arguments.
    "annotation_typing": False,
    # This costs less than 1 % of the instructions. Reads through pointers are not checked: docs/explanation/memory.md.
    "boundscheck": True,
    # The sources never index from the end.
    "wraparound": False,
    "initializedcheck": False,
    # None where an object of ours belongs is a mistake of the caller's, and must not end the process.
    "nonecheck": True,
    "cdivision": True,
    "binding": True,
    # Not declared compatible with free threading, which is not tested: such an interpreter turns its lock on.
}


def extensions() -> list[Extension]:
    """Return what is to be compiled: a `.pyx` goes before the plain twin that lies beside it."""
    if os.environ.get("WEIRPOOL_NO_EXTENSIONS") == "1":
        return []
    pointers = sorted(SOURCE.rglob("*.pyx"))
    shared = [path for path in sorted(SOURCE.rglob("*.py")) if path.with_suffix(".pxd").exists()]
    sources = pointers + [path for path in shared if path.with_suffix(".pyx") not in pointers]
    named = {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in sources}
    if len(named) > 1:
        named[SHARED] = SOURCE / "weirpool" / "_shared.c"
    # Debugging information takes a third of the compile time, and the warnings concern generated C.
    # Hot paths cross many modules. Without alignment, their speed depends on the addresses of their functions: new
    # texts and names elsewhere once made streams 15 % slower on the developers' machine.
    posix_flags = ["-O3", "-g0", "-falign-functions=64", "-Wno-unreachable-code", "-Wno-sign-compare"]
    flags = [] if sys.platform == "win32" else posix_flags
    checks = os.environ.get("WEIRPOOL_SANITIZE", "").split()
    link_flags = [flag for flag in checks if flag.startswith("-fsanitize=")]
    return [
        Extension(name, [str(path)], extra_compile_args=[*flags, *checks], extra_link_args=link_flags)
        for name, path in named.items()
    ]


def keep_freelists() -> None:
    """Let `@cython.freelist` of a .pxd apply to a class whose body is in a .py. Cython 3.3 forgets it there.

    Such a class must not have `__del__`, which is called for the first use of an object only.

    Raises ImportError if there is no Cython.
    """
    from Cython.Compiler.Nodes import CClassDefNode

    analyse = CClassDefNode.analyse_declarations

    def analyse_and_keep(self: Any, env: Any) -> None:
        declared = env.lookup_here(self.class_name)
        scope = declared.type.scope if declared is not None and declared.is_type else None
        size = (getattr(scope, "directives", None) or {}).get("freelist", 0)
        analyse(self, env)
        if size:
            self.entry.type.scope.directives = {**self.entry.type.scope.directives, "freelist": size}

    CClassDefNode.analyse_declarations = analyse_and_keep


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def translate(wanted: list[Extension], processes: int, quiet: bool) -> None:
    """Let Cython make C of what has changed.

    Raises:
        ImportError: There is no Cython.
        CompileError: It cannot make anything of a source.

    """
    from Cython.Build import cythonize
    from Cython.Compiler.Errors import CompileError as CythonError

    keep_freelists()
    try:
        made = cythonize(
            wanted,
            compiler_directives=DIRECTIVES,
            nthreads=processes,
            quiet=quiet,
            shared_utility_qualified_name=SHARED if len(wanted) > 1 else None,
        )
    except CythonError as error:
        raise CompileError(f"Cython: {error}") from error
    c_sources = {extension.name: extension.sources for extension in made}
    for extension in wanted:
        extension.sources = c_sources[extension.name]


class OptionalBuildExt(build_ext):
    """Build all extensions, or none."""

    def run(self) -> None:
        """Note where the extensions go, then build them."""
        self.places = [self.build_lib, SOURCE] if self.inplace else [self.build_lib]
        self.parallel = self.parallel or cores()
        super().run()

    def build_extensions(self) -> None:
        """Build; where that fails, remove what there is, also of older builds, and say why."""
        try:
            self.try_compiler()
            translate(self.extensions, self.parallel, quiet=not self.verbose)
            # The largest first, so that all cores have work until the end.
            self.extensions.sort(
                key=lambda extension: -sum(Path(source).stat().st_size for source in extension.sources)
            )
            self.built = count(1)
            super().build_extensions()
        except BUILD_ERRORS as error:
            if REQUIRED:
                raise
            for place, extension in product(self.places, self.extensions):
                Path(place, self.get_ext_filename(extension.name)).unlink(missing_ok=True)
            self.extensions = []
            print(f"weirpool: nothing is compiled, the plain Python modules serve instead ({error})", file=sys.stderr)

    def try_compiler(self) -> None:
        """Compile an empty module: without a compiler or Python's headers, Cython would work for minutes in vain.

        Raises:
            CompileError: That fails.

        """
        with TemporaryDirectory() as folder:
            source = Path(folder, "empty.c")
            source.write_text("#include <Python.h>\n")
            try:
                self.compiler.compile([str(source)], output_dir=folder)
            except BUILD_ERRORS as error:
                raise CompileError(f"no C compiler, or Python's headers are missing: {error}") from error

    def build_extension(self, extension: Extension) -> None:
        """Build one, and print how far the build is, as Cython does."""
        super().build_extension(extension)
        print(f"[{next(self.built)}/{len(self.extensions)}] Compiled {extension.name}", flush=True)


class ReproducibleSdist(sdist):
    """Pack the same sources into the same bytes: sorted, of one time, and of nobody."""

    def make_archive(self, base_name: str, format: str, *args: Any, **options: Any) -> str:
        """Write the archive, and return its path; formats other than gztar are packed as ever."""
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if format != "gztar" or epoch is None:
            return str(super().make_archive(base_name, format, *args, **options))
        path, folder = Path(f"{base_name}.tar.gz"), Path(options["base_dir"])
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            path.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=int(epoch)) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for source in sorted(each for each in folder.rglob("*") if not each.is_dir()):
                entry = archive.gettarinfo(source)
                # Files may be links to one another while they are packed.
                entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", source.stat().st_size
                entry.mode = 0o755 if entry.mode & 0o100 else 0o644
                entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = int(epoch), 0, 0, "", ""
                with source.open("rb") as content:
                    archive.addfile(entry, content)
        return str(path)


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuildExt, "sdist": ReproducibleSdist})
