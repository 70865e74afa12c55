"""A defect in compiled code ends a process that has the environment of `make fuzz`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz import sanitizing

from tests.missing import need

DEFECTS = """
#include <limits.h>
#include <stdlib.h>
int none(int at) { volatile char *made = malloc(8); made[at & 7] = 1; return made[at & 7]; }
int beyond(int at) { volatile char *made = malloc(8); return made[7 + at]; }
int freed(int at) { volatile char *made = malloc(8); free((void *)made); return made[at & 7]; }
int overflow(int at) { return INT_MAX + (at | 1); }
"""
FOUND = {"beyond": "insufficient space", "freed": "heap-use-after-free", "overflow": "signed integer overflow"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("cc")
    folder = tmp_path_factory.mktemp("defects")
    source, library = folder / "defects.c", folder / "defects.so"
    source.write_text(DEFECTS)
    sanitizing.compile_library(source, library, *sanitizing.FLAGS)
    sanitizing.compile_library(sanitizing.EDGES, folder / "edges.so")
    return library


def run(library: Path, function: str) -> subprocess.CompletedProcess[str]:
    call = f"import ctypes; print(ctypes.CDLL({str(library)!r}).{function}(1))"
    env = sanitizing.environment(library.with_name("edges.so"))
    return subprocess.run([sys.executable, "-S", "-c", call], env=env, capture_output=True, text=True)


def test_sound_code_runs(library: Path) -> None:
    ended = run(library, "none")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1\n", "")


@pytest.mark.parametrize("function", FOUND)
def test_defect_ends_the_process(library: Path, function: str) -> None:
    ended = run(library, function)
    assert ended.returncode
    assert ended.stdout == ""
    assert FOUND[function] in ended.stderr
