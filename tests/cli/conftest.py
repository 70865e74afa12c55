"""The command line, run in this process or in a separate one, and servers for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.logs import kept_logging
from weirpool.cli.main import run

INTEROP = Path(__file__).parents[2] / "examples" / "interop.py"
SEEN = f"{Path(__file__).parent / 'seen.py'}:service"
SECONDS = 60.0
"""Time limit for a process, in seconds."""


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[bytes]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


Weirpool = Callable[..., Result]


def command(*arguments: str) -> list[str]:
    """Return the command that runs the command line in a separate process."""
    return [sys.executable, "-m", "weirpool", *arguments]


@contextmanager
def serving(*arguments: str, options: Sequence[str] = ()) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run `weirpool serve` with one or more URLs; yield the process and the URLs on which it listens."""
    process = subprocess.Popen(
        command("serve", *arguments, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    with process:
        try:
            assert process.stdout is not None and process.stderr is not None
            urls = []
            for _ in arguments[1:]:
                line = process.stdout.readline()
                assert line.startswith("listening on "), process.stderr.read()
                urls.append(line.removeprefix("listening on ").strip())
            yield process, urls
        finally:
            process.kill()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a server of examples/interop.py."""
    with serving(f"{INTEROP}:service", "rsocket+tcp://127.0.0.1:0") as (_, urls):
        yield urls[0]


@pytest.fixture(scope="session")
def seen() -> Iterator[str]:
    """The URL of a server of seen.py, which grants leases to clients that ask."""
    with serving(SEEN, "rsocket+tcp://127.0.0.1:0", options=["--lease", "1000/60"]) as (_, urls):
        yield urls[0]


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Ignore the configuration of the user who runs the tests, and that which other tests have saved."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))


@pytest.fixture
def weirpool(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Weirpool]:
    """Run the command line in this process; standard input is a file."""
    given = tmp_path / "stdin"
    with open(given, "w+b") as binary:

        def execute(*arguments: str, stdin: bytes = b"") -> Result:
            binary.seek(0)
            binary.truncate()
            binary.write(stdin)
            binary.flush()
            with open(given, encoding="utf-8") as text, monkeypatch.context() as patch, kept_logging():
                patch.setattr(sys, "stdin", text)
                with pytest.raises(SystemExit) as end:
                    run(list(arguments))
            out, err = capsysbinary.readouterr()
            assert isinstance(end.value.code, int)
            assert b"Traceback" not in err
            return Result(end.value.code, out, err.decode())

        yield execute


def assert_one_line(result: Result) -> None:
    """Check that standard error is one line of ours."""
    assert result.err.startswith("weirpool: ")
    assert result.err.count("\n") == 1
