from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs import given
from tests.docs.consoles import USUAL
from tests.docs.pages import PAGES, ROOT, blocks
from tests.docs.programs import PROGRAMS, SHOWN_ELSEWHERE, Program
from tests.docs.running import Piece, run_pieces

SECONDS = 60
MODULES = "import json, os, weirpool\nfrom tests.docs import given\n"

WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
RUN = [page for page in WITH_PYTHON if page not in SHOWN_ELSEWHERE]


def needs_spark(page: str) -> bool:
    return any("spark" in block.text for block in blocks(page, "python"))


def pieces(page: str, program: Program, folder: Path) -> list[Piece]:
    """Return the code to run: what is given, the blocks with what stands for addresses and folders, and the checks."""
    ports = given.free_ports(3)
    given_names = f"{MODULES}PORTS = {ports!r}\nFOLDER = {str(folder)!r}\n"
    found: list[Piece] = [("given", 1, given_names + textwrap.dedent(program.before))]
    unseen = set(program.swaps)
    for block in blocks(page, "python"):
        text = block.text
        for printed, here in program.swaps.items():
            if printed in text:
                unseen.discard(printed)
                text = text.replace(printed, here.format(*ports, folder=folder))
        found.append((str(ROOT / page), block.line, text))
    assert unseen == set(), "the page does not have this text"
    return [*found, ("checks", 1, textwrap.dedent(program.after))]


def program_of(page: str) -> Program:
    """Return how a page is run: as it is, at a free port, if it is not listed."""
    text = "".join(block.text for block in blocks(page, "python"))
    return PROGRAMS.get(page) or Program(swaps={key: here for key, here in USUAL.items() if key in text})


def test_listed_pages_have_python() -> None:
    assert sorted((set(PROGRAMS) | set(SHOWN_ELSEWHERE)) - set(WITH_PYTHON)) == []


@pytest.mark.parametrize("page", [page for page in RUN if not needs_spark(page)])
def test_page_runs(page: str, tmp_path: Path) -> None:
    program = program_of(page)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.running"],
        input=json.dumps(pieces(page, program, tmp_path)),
        cwd=tmp_path,
        env={**given.environment(), "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert result.stderr == ""
    assert result.returncode == 0
    assert program.output in result.stdout


@pytest.mark.spark
@pytest.mark.parametrize("page", [page for page in RUN if needs_spark(page)])
def test_spark_page_runs(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spark: SparkSession,
) -> None:
    monkeypatch.chdir(tmp_path)
    run_pieces(pieces(page, program_of(page), tmp_path), {"spark": spark})
    assert program_of(page).output in capsys.readouterr().out
