"""Long steps of the Makefile: a bar, a log, and one line for a failure."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.step import LINE_CHARACTERS, Progress, run

ROOT = Path(__file__).parent.parent


class Terminal(io.StringIO):
    """A screen with a cursor."""

    def isatty(self) -> bool:
        return True


def line_after(*lines: str, total: int = 10) -> str:
    progress = Progress(total)
    for line in lines:
        progress.read(line)
    return progress.line(65)


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ([], "[........................] 0/10 1:05 "),
        (["[3/6] Compiled weirpool.urls\n"], "[############............] 3/6 1:05 Compiled weirpool.urls"),
        (["[ 1/66] Cythonizing src/urls.py"], "[........................] 1/66 1:05 Cythonizing src/urls.py"),
        (
            ["Collecting pyspark==4.3.0 (from x)", "  Downloading pyspark-4.3.0.tar.gz (455.2 MB)"],
            "[##......................] 1/10 1:05 Downloading pyspark, 455.2 MB",
        ),
        (
            ["Collecting typing-extensions>=4", "  Downloading typing_extensions-4.1-py3.whl (45 kB)"],
            "[##......................] 1/10 1:05 Downloading typing_extensions",
        ),
        (["  Building wheel for pyspark (setup.py): started"], "[........................] 0/10 1:05 Building pyspark"),
        (["Installing collected packages: pytz, py4j"], "[########################] 10/10 1:05 Unpacking packages"),
        (["Collecting a", "Collecting b"] * 6, "[########################] 12/12 1:05 Collecting b"),
    ],
)
def test_output_moves_the_bar(lines: list[str], shown: str) -> None:
    assert line_after(*lines) == shown


def test_line_fits_a_terminal() -> None:
    assert len(line_after(f"[1/2] Compiled {'x' * 200}")) == LINE_CHARACTERS


def stepped(folder: Path, code: str, screen: io.StringIO) -> int:
    return run(folder / "build" / "log", 3, "doing it", [sys.executable, "-c", code], screen)


def test_log_has_the_output_and_the_reader_two_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    screen = io.StringIO()
    code = "import sys; print('Collecting x'); print('weirpool: note'); print('odd', file=sys.stderr)"
    assert stepped(tmp_path, code, screen) == 0
    assert re.fullmatch(r"doing it\nweirpool: note\n  done in \d+ s\n", screen.getvalue())
    assert sorted((tmp_path / "build" / "log").read_text().splitlines()) == ["Collecting x", "odd", "weirpool: note"]
    assert capfd.readouterr() == ("", "")


def test_terminal_shows_a_bar_and_clears_it(tmp_path: Path) -> None:
    screen = Terminal()
    assert stepped(tmp_path, "print('Collecting x')", screen) == 0
    assert "\r[" in screen.getvalue()
    assert f"\r{' ' * LINE_CHARACTERS}\r" in screen.getvalue()


def test_failure_is_one_line_that_names_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = "print('much'); print('ERROR: No matching distribution'); print('more'); raise SystemExit(3)"
    assert stepped(tmp_path, code, io.StringIO()) == 3
    log = tmp_path / "build" / "log"
    told = f"make: this failed: ERROR: No matching distribution; the whole output is in {log}\n"
    assert capfd.readouterr() == ("", told)


def closure(requirements: list[Requirement]) -> Iterator[str]:
    """Yield the names of the packages that are installed for these, except ours."""
    seen: set[tuple[str, frozenset[str]]] = set()
    while requirements:
        each = requirements.pop()
        name, extras = canonicalize_name(each.name), frozenset(each.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        if name != "weirpool":
            yield name
        found = map(Requirement, distribution(name).requires or [])
        requirements += [
            one for one in found
            if not one.marker or any(one.marker.evaluate({"extra": extra}) for extra in extras or {""})
        ]  # fmt: skip


def test_number_of_the_demos_packages_is_right() -> None:
    makefile = (ROOT / "Makefile").read_text()
    packages = set(closure([Requirement("weirpool[demo]")]))
    assert f"DEMO_PACKAGES := {len(packages)}\n" in makefile


@pytest.mark.parametrize("compiled", [False, True])
def test_demo_compiles_nothing_unless_something_is_compiled(tmp_path: Path, compiled: bool) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "setup.py"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "src").mkdir()
    if compiled:
        (tmp_path / ".venv").mkdir()
        (tmp_path / ".venv" / "built").touch()
    made = subprocess.run(["make", "--dry-run", "demo"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ("setup.py build_ext" in made.stdout) is compiled
    assert ("--editable '.[demo]'" in made.stdout) is not compiled
    assert ("WEIRPOOL_PURE=1 .venv/bin/weirpool demo" in made.stdout) is not compiled
