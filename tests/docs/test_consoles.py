from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import weirpool
from tests.docs import given
from tests.docs.consoles import CONSOLES, USUAL, Console
from tests.docs.pages import PAGES, ROOT, blocks
from tests.missing import need
from weirpool.serving import serve_journal

SECONDS = 120
COMMAND = re.compile(r"^[$#] (.*\bweirpool .*)$")
WITH_COMMANDS = [
    page
    for page in PAGES
    if any(COMMAND.match(line) for block in blocks(page, "console") for line in block.text.splitlines())
]


def steps(page: str, console: Console, ports: list[int]) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a page that is run, and the lines that the page shows after it."""
    used, skipped = set(), set()
    for block in blocks(page, "console"):
        command, shown = "", list[str]()
        for line in [*block.text.splitlines(), "$ "]:
            if not line.startswith(("$ ", "# ")):
                shown.append(line)
                continue
            if command:
                yield command, shown
            found, shown = COMMAND.match(line), []
            command = found[1] if found else ""
            for printed, here in (console.swaps | unlisted(console)).items():
                if printed in command:
                    used.add(printed)
                    command = command.replace(printed, here.format(*ports, root=ROOT))
            for part in console.skipped:
                if part.format(*ports, root=ROOT) in " ".join(command.split()):
                    skipped.add(part)
                    command = ""
    assert used >= set(console.swaps), "the page does not have the other texts"
    assert skipped == set(console.skipped), "the page does not have the other commands"


def unlisted(console: Console) -> dict[str, str]:
    """Return what stands for the usual addresses, unless the page has something else for them."""
    return {printed: here for printed, here in USUAL.items() if not any(printed in each for each in console.swaps)}


@contextmanager
def background(command: str, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a command that serves, until the block ends."""
    words = [word for word in shlex.split(command, comments=True) if word != "&"]
    process = subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert any("rsocket" in line for line in process.stdout)
        yield
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def prepared(page: str, console: Console, ports: list[int], stack: ExitStack) -> None:
    """Make what the commands of a page need, in this folder."""
    if console.certificates:
        given.certificates()
    if console.publisher:
        service = given.publisher()
        url = f"rsocket+tcp://127.0.0.1:{ports[0]}"
        stack.enter_context(given.serving(url, weirpool.audited(service) if console.audited else service))
    if console.journal:
        given.journal_of("served", "flights", [b'{"delay": %d}' % number for number in range(100)])
        shared = weirpool.Service()
        serve_journal(shared, "served")
        stack.enter_context(given.serving(f"rsocket+tcp://127.0.0.1:{ports[1]}", shared))
    for name, count in console.pages.items():
        text = "\n".join(block.text for block in blocks(page, "python")[:count])
        for printed, here in (console.swaps | unlisted(console)).items():
            text = text.replace(printed, here.format(*ports, root=ROOT))
        Path(name).write_text(text)
        if "serve_forever" in text:
            stack.enter_context(given.running(name, f"127.0.0.1:{ports[0]}"))


def test_listed_pages_have_commands() -> None:
    assert sorted(set(CONSOLES) - set(WITH_COMMANDS)) == []


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_run(page: str, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    need("bash")
    monkeypatch.chdir(tmp_path)
    console, ports, served = CONSOLES.get(page, Console()), given.free_ports(3), set[str]()
    with ExitStack() as stack:
        prepared(page, console, ports, stack)
        for command, shown in steps(page, console, ports):
            if re.match(r"weirpool (serve|playground)", command):
                if re.split("[#&]", command)[0].strip() == "weirpool playground":
                    command = f"weirpool playground rsocket+tcp://127.0.0.1:{ports[0]}"
                if command not in served:
                    stack.enter_context(background(command, tmp_path, environment))
                served.add(command)
                continue
            result = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS,
            )  # fmt: skip
            assert result.returncode == 0, f"{command}: {result.stderr}"
            assert_shown(shown, result.stdout)


def assert_shown(shown: list[str], output: str) -> None:
    """Compare what a page shows with what a command prints. `…` on the page stands for anything, and so do numbers."""
    for line in shown:
        pattern = re.escape(line).replace("…", ".*")
        pattern = re.sub(r"\d[\d,]*", r"[\\d,]+", pattern)
        assert not line.strip() or re.search(pattern, output), f"the page shows {line!r}, and it prints {output!r}"
