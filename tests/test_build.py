"""The two builds: their selection, and installing without a compiler or Cython."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import chain
from pathlib import Path

import pytest

from tests.builds import Build
from weirpool import _build

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "weirpool"
LOCK = (ROOT / "requirements.lock").read_text()
SUFFIX = EXTENSION_SUFFIXES[0]
PROJECT = """
[project]
name = "weirpool"
version = "1"

[tool.setuptools]
package-dir = { "" = "src" }
"""


def run_python(*arguments: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with additional environment variables, and without those that select a build."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WEIRPOOL_")} | variables
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
    )


def source_of(module: str) -> Path:
    """Return the path of a compiled module, without its suffix."""
    return ROOT.joinpath("src", *module.split("."))


# --- which build runs ---


def test_accelerated_is_true_if_modules_are_compiled() -> None:
    assert _build.ACCELERATED == bool(_build.compiled_modules())


def test_compiled_modules_lists_imported_extensions(builds: dict[str, Build]) -> None:
    for name in _build.compiled_modules():
        assert str(builds["compiled"].module(name).__file__).endswith(tuple(EXTENSION_SUFFIXES))


def test_all_are_compiled_or_none() -> None:
    wanted = {path.with_suffix("") for path in PACKAGE.rglob("*.p*") if path.suffix in {".pxd", ".pyx"}}
    compiled = {source_of(name) for name in _build.compiled_modules()} - {PACKAGE / "_shared"}
    assert compiled in (set(), wanted), "run make install"


def test_no_extension_is_older_than_its_sources() -> None:
    for name in _build.compiled_modules():
        made = source_of(name).with_suffix(SUFFIX).stat().st_mtime
        pointers = source_of(name).with_suffix(".pyx")
        shared = source_of(name).with_suffix(".py")
        sources = [pointers if pointers.exists() else shared, shared.with_suffix(".pxd")]
        assert not [path for path in sources if path.exists() and path.stat().st_mtime > made], "run make install"


def test_plain_build_imports_sources(builds: dict[str, Build]) -> None:
    for path in PACKAGE.rglob("*.pxd"):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        if path.with_suffix(".py").exists():
            assert builds["plain"].module(name).__file__ == str(path.with_suffix(".py"))


def test_builds_share_no_module(builds: dict[str, Build]) -> None:
    modules = [build.module("weirpool.errors") for build in builds.values()]
    assert len({id(module) for module in modules}) == len(modules)


def test_import_in_a_test_uses_its_build(build: Build) -> None:
    from weirpool import errors

    assert errors is build.module("weirpool.errors")


# --- WEIRPOOL_PURE ---


def test_pure_imports_no_extension() -> None:
    paths = [path for path in PACKAGE.rglob("*.pxd") if path.with_suffix(".py").exists()]
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    code = (
        "import importlib, sys, weirpool\n"
        f"for name in {names}: importlib.import_module(name)\n"
        "ours = [m for n, m in sys.modules.items() if n.partition('.')[0] == 'weirpool']\n"
        "print(weirpool.ACCELERATED, {m.__file__.rpartition('.')[2] for m in ours})"
    )
    assert run_python("-c", code, WEIRPOOL_PURE="1").stdout == "False {'py'}\n"


def test_source_finder_hides_modules_without_source(tmp_path: Path) -> None:
    (tmp_path / f"ghost{SUFFIX}").touch()
    with pytest.raises(ModuleNotFoundError, match="has no Python source"):
        _build.SourceFinder.find_spec("weirpool.ghost", [str(tmp_path)])


def test_source_finder_ignores_other_packages(tmp_path: Path) -> None:
    (tmp_path / "ghost.py").touch()
    assert _build.SourceFinder.find_spec("weirpool_ghost", [str(tmp_path)]) is None
    assert _build.SourceFinder.find_spec("weirpool", None) is None


# --- what is installed ---


def test_lock_covers_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[\[<>=;, ]", requirement)[0].lower().replace("_", "-") for requirement in wanted} - {"weirpool"}
    locked = {line.partition("==")[0].lower().replace("_", "-") for line in LOCK.splitlines() if "==" in line}
    assert names <= locked, "run make lock"


def test_lock_pins_every_line() -> None:
    lines = [line for line in LOCK.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+( ;.+)?", line) for line in lines)


# --- setup.py ---


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of setup.py above a package of one module that can be compiled."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    package = tmp_path / "src" / "weirpool"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (package / "__init__.py").touch()
    (package / "one.py").write_text("def one():\n    return 1\n")
    (package / "one.pxd").write_text("cpdef int one()\n")
    return tmp_path


def built(project: Path) -> bool:
    """Return True if a compiled module exists beside its source."""
    return (project / "src" / "weirpool" / f"one{SUFFIX}").exists()


def cython(project: Path, build: str) -> None:
    """Put a package of Cython's name before the real one, with this code as its module `Build`."""
    compiler = project / "Cython" / "Compiler"
    compiler.mkdir(parents=True)
    (project / "Cython" / "__init__.py").touch()
    (compiler / "__init__.py").touch()
    (compiler / "Nodes.py").write_text("class CClassDefNode:\n    def analyse_declarations(self, env): ...\n")
    (compiler / "Errors.py").write_text("class CompileError(Exception): ...\n")
    (project / "Cython" / "Build.py").write_text(build)


def test_setup_falls_back_to_plain_build_without_compiler(project: Path) -> None:
    # Extensions of an older build must be removed, because compiled modules use each other's layouts.
    (project / "src" / "weirpool" / f"one{SUFFIX}").touch()
    result = run_python("setup.py", "build_ext", "--inplace", cwd=project, CC="/bin/false")
    assert result.returncode == 0
    assert "the plain Python modules serve instead" in result.stderr
    assert not built(project)


@pytest.mark.parametrize("missing", ["compiler", "headers"])
def test_setup_finds_out_first_that_nothing_can_be_compiled(project: Path, missing: str) -> None:
    # Cython would take minutes.
    cython(project, "raise AssertionError('Cython was asked')")
    (project / "cc").write_text("#!/bin/sh\ncase $* in *empty.c*) exit 1; esac\n")
    (project / "cc").chmod(0o755)
    compiler = "/bin/false" if missing == "compiler" else str(project / "cc")
    result = run_python("setup.py", "build_ext", "--inplace", cwd=project, PYTHONPATH=str(project), CC=compiler)
    assert result.returncode == 0, result.stderr
    assert "serve instead (no C compiler, or Python's headers are missing" in result.stderr
    assert not list(project.rglob("*.c"))


@pytest.mark.skipif(os.environ.get("WEIRPOOL_REQUIRE_EXTENSIONS") != "1", reason="there may be no compiler")
def test_setup_uses_all_cores(project: Path) -> None:
    cython(project, "def cythonize(wanted, nthreads, **options):\n    raise ImportError(f'{nthreads} processes')\n")
    (project / "sitecustomize.py").write_text("import os\nos.sched_getaffinity = lambda pid: set(range(7))\n")
    result = run_python("setup.py", "build_ext", "--inplace", cwd=project, PYTHONPATH=str(project))
    assert "serve instead (7 processes)" in result.stderr


def test_setup_falls_back_to_plain_build_without_cython(project: Path) -> None:
    (project / "Cython.py").write_text("raise ImportError('no Cython here')")
    result = run_python("setup.py", "build_ext", "--inplace", cwd=project, PYTHONPATH=str(project))
    assert result.returncode == 0
    assert "serve instead (no Cython here)" in result.stderr


def test_setup_falls_back_to_plain_build_on_cython_errors(project: Path) -> None:
    (project / "src" / "weirpool" / "one.pxd").write_text("this is no Cython\n")
    result = run_python("setup.py", "build_ext", "--inplace", cwd=project)
    assert result.returncode == 0
    assert "serve instead (Cython: " in result.stderr


def test_setup_fails_without_required_extensions(project: Path) -> None:
    variables = {"CC": "/bin/false", "WEIRPOOL_REQUIRE_EXTENSIONS": "1"}
    result = run_python("setup.py", "build_ext", "--inplace", cwd=project, **variables)
    assert result.returncode != 0


def test_setup_skips_declined_extensions(project: Path) -> None:
    result = run_python("setup.py", "build_ext", "--inplace", cwd=project, WEIRPOOL_NO_EXTENSIONS="1")
    assert result.returncode == 0
    assert not built(project)


@pytest.mark.skipif(os.environ.get("WEIRPOOL_REQUIRE_EXTENSIONS") != "1", reason="there may be no compiler")
def test_setup_builds_extension_and_tells_how_far_it_is(project: Path) -> None:
    result = run_python("setup.py", "build_ext", "--inplace", cwd=project)
    assert result.returncode == 0, result.stderr
    assert built(project)
    assert "[1/1] Compiled weirpool.one\n" in result.stdout
