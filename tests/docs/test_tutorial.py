from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import weirpool
from tests.docs import given
from tests.docs.pages import ROOT, Block, blocks
from tests.docs.running import run_pieces
from tests.docs.test_consoles import assert_shown
from tests.missing import need

PAGE = "docs/tutorial/ticker-to-lakehouse.md"
SECONDS = 120
TITLE = re.compile(r'title="([^"]+)"')


class Reader:
    """Somebody who follows the tutorial: writes its files, types its commands, and runs its Python."""

    def __init__(self, folder: Path, environment: dict[str, str], spark: SparkSession, stack: ExitStack) -> None:
        self.folder = folder
        self.pieces: dict[str, object] = {"spark": spark}
        self._environment = environment
        self._stack = stack
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._port = given.free_ports(1)[0]

    def here(self, text: str) -> str:
        """Return text of the page with this machine's port, and paths that Spark's process finds."""
        text = text.replace("127.0.0.1:7878", f"127.0.0.1:{self._port}")
        return re.sub(r'"(data|lake)/', rf'"{self.folder}/\1/', text)

    def follow(self, block: Block, title: str) -> None:
        """Do what a block says."""
        if title:
            (self.folder / title).write_text(self.here(block.text))
        elif block.language == "python":
            run_pieces([(str(ROOT / PAGE), block.line, self.here(block.text))], self.pieces)
        elif block.language == "console":
            lines = block.text.splitlines()
            shown = [line for line in lines if not line.startswith("$ ")]
            for line in lines:
                if line.startswith("$ "):
                    self.type(self.here(line.removeprefix("$ ")), shown)

    def type(self, command: str, shown: list[str]) -> None:
        """Run a command: those that do not end, in a terminal of their own."""
        verb = " ".join(command.split()[:2])
        if verb in ("weirpool serve", "weirpool collect"):
            return self._start(verb, command)
        result = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self._environment, capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        assert_shown(shown, result.stdout)

    def _start(self, verb: str, command: str) -> None:
        if verb in self._running:
            self._running[verb].terminate()
            self._running[verb].wait(SECONDS)
        log = self._stack.enter_context((self.folder / f"{verb.split()[1]}.log").open("w"))
        process = subprocess.Popen(
            shlex.split(command), cwd=self.folder, env=self._environment, stdout=log, stderr=log, text=True
        )
        self._stack.callback(process.wait, SECONDS)
        self._stack.callback(process.terminate)
        self._running[verb] = process
        given.wait_until(self._listens if verb == "weirpool serve" else self._collected)

    def _listens(self) -> bool:
        return "listening" in (self.folder / "serve.log").read_text()

    def _collected(self) -> bool:
        with suppress(weirpool.JournalError):
            return weirpool.Journal(self.folder / "data/market").reader("quotes").end >= 10
        return False


@pytest.mark.spark
@pytest.mark.slow
def test_tutorial_runs_from_its_first_to_its_last_step(
    tmp_path: Path,
    environment: dict[str, str],
    spark: SparkSession,
) -> None:
    need("bash")
    with ExitStack() as stack:
        reader = Reader(tmp_path, environment, spark, stack)
        for block in blocks(PAGE):
            reader.follow(block, title_of(block))
        given.wait_until(lambda: "alert: " in (tmp_path / "serve.log").read_text())


def title_of(block: Block) -> str:
    """Return the name of the file that a block shows."""
    fence = (ROOT / block.page).read_text().splitlines()[block.line - 2]
    found = TITLE.search(fence)
    return found[1] if found else ""
