"""A laboratory that cannot find a known mistake is itself defective."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

from .laboratories import LABORATORIES
from .patching import edited
from .saboteur import Saboteur
from .saboteurs import SABOTEURS

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "explanation" / "reliability.md"
PATIENCE = 300.0
"""Seconds for one laboratory, on a machine that is busy."""
SLOW = {"absent collectors", "collectors", "group commits", "kills", "micro-batches", "power cuts", "successors"}
"""Laboratories that take more than some five seconds."""


class PlainProcess:
    """A process of the plain build in which mistakes are made: compiled classes cannot be patched."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def breach(self, name: str) -> str | None:
        """Return what is found of a saboteur, or in a laboratory on sound code."""
        if self._process is None:
            self._process = self._started()
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        timer = Timer(PATIENCE, process.kill)
        timer.start()
        try:
            process.stdin.write(name + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        finally:
            timer.cancel()
        if not answer:
            self.close()
            pytest.fail(f"{name!r} took longer than {PATIENCE:g} s")
        found: str | None
        found, error = json.loads(answer)
        assert not error, error
        return found

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.saboteurs", "-"],
            cwd=ROOT,
            env={**os.environ, "WEIRPOOL_PURE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(scope="module")
def plain_process() -> Iterator[PlainProcess]:
    made = PlainProcess()
    yield made
    made.close()


@pytest.mark.parametrize(
    "laboratory", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in LABORATORIES]
)
def test_a_laboratory_finds_nothing_in_sound_code(plain_process: PlainProcess, laboratory: str) -> None:
    assert plain_process.breach(laboratory) is None


@pytest.mark.parametrize("saboteur", SABOTEURS, ids=lambda saboteur: saboteur.name.replace(" ", "-"))
def test_a_laboratory_finds_a_known_mistake(plain_process: PlainProcess, saboteur: Saboteur) -> None:
    assert plain_process.breach(saboteur.name), f"{saboteur.laboratory!r} cannot find that {saboteur.mistake}"


def test_each_laboratory_is_held_to_it() -> None:
    assert len(SABOTEURS) >= 20
    assert len({saboteur.name for saboteur in SABOTEURS}) == len(SABOTEURS)
    assert {saboteur.laboratory for saboteur in SABOTEURS} <= LABORATORIES.keys()


def test_the_page_lists_all_mistakes() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and line.count(" | ") == 3]
    expected = [
        f"| {each.name} | {each.mistake} | {each.origin or '–'} | {each.laboratory} |"  # noqa: RUF001
        for each in SABOTEURS
    ]
    assert [row for row in rows if row in expected] == expected


class Code:
    def twice(self, number: int) -> int:
        return 2 * number


def test_an_edit_lasts_as_long_as_its_block() -> None:
    with edited(Code, "twice", ("2 * number", "3 * number")):
        assert Code().twice(2) == 6
    assert Code().twice(2) == 4


def test_an_edit_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(LookupError, match="mend the saboteur"), edited(Code, "twice", ("4 * number", "")):
        pass
