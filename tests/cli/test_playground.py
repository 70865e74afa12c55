from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line, command
from weirpool.cli import playground as module
from weirpool.playground.service import service
from weirpool.urls import parse_url

TCP = "rsocket+tcp://127.0.0.1:0"
RIVER = "river+tcp://127.0.0.1:0"


@contextmanager
def playing(*arguments: str, env: Mapping[str, str] | None = None) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run the playground; yield the process and what it prints until it is ready."""
    arguments = tuple(command("playground", *arguments))
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    with process:
        try:
            assert process.stdout is not None and process.stderr is not None
            lines = []
            while not lines or lines[-1] != "Ctrl-C stops it":
                lines.append(process.stdout.readline().rstrip("\n"))
                assert lines[-1] or process.poll() is None, process.stderr.read()
            yield process, lines
        finally:
            process.kill()


def addresses(lines: list[str]) -> list[str]:
    return [line.removeprefix("listening on ") for line in lines if line.startswith("listening on ")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_playground_prints_its_routes_and_ends_on_a_signal(number: signal.Signals) -> None:
    with playing(TCP) as (process, lines):
        begin = lines.index("routes:")
        told = [line.split()[:2] for line in lines[begin + 1 : lines.index("", begin)]]
        assert told == [[kind.name.lower(), route] for kind, route in service.routes()]
        process.send_signal(number)
        assert process.wait(SECONDS) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_printed_commands_work() -> None:
    with playing(TCP, RIVER) as (_, lines):
        commands = lines[lines.index("in another terminal:") + 1 : -2]
        assert len(commands) == 4
        assert all(any(url in line for line in commands) for url in addresses(lines))
        for line in commands:
            # A stream of prices never ends.
            shown = line.replace("weirpool", shlex.join(command()))
            shown += " --take 2" if " stream " in line else ""
            result = subprocess.run(shown, shell=True, capture_output=True, text=True, timeout=SECONDS)
            assert (result.returncode, result.stderr) == (0, ""), line
            assert result.stdout


def test_commands_for_values_work(weirpool: Weirpool) -> None:
    with playing(RIVER) as (_, lines):
        [url] = addresses(lines)
        assert re.search(rf"weirpool call {re.escape(url)} quotes\.latest -d '", "\n".join(lines))
        assert (
            weirpool("call", url, "quotes.latest", "-d", '{"symbol": "ACME"}').out
            == b'{"symbol":"ACME","price":100.0}\n'
        )
        result = weirpool("upload", url, "orders.load", "-", stdin=b'{"symbol": "ACME", "count": 5}\n')
        assert result.out == b'{"orders":1,"value":500.0}\n'


def test_commands_are_for_a_client_on_this_machine_and_for_a_shell() -> None:
    urls = [parse_url("rsocket+tcp://0.0.0.0:7000"), parse_url("river+tcp://:7001?codec=msgpack&server=one")]
    found = module._commands(urls)
    assert found[0] == "weirpool call rsocket+tcp://localhost:7000 echo -d hello"
    assert shlex.split(found[3])[2] == "river+tcp://localhost:7001?codec=msgpack&server=one"
    assert ' \'{"symbol"' in found[3]


def test_taken_port_is_one_line_that_names_another(weirpool: Weirpool, monkeypatch: pytest.MonkeyPatch) -> None:
    with playing(TCP) as (_, lines):
        monkeypatch.setattr(module, "EXAMPLE_URLS", tuple(addresses(lines)))
        result = weirpool("playground")
    assert result.code == 3
    assert_one_line(result)
    assert result.err.endswith(f"choose another address: weirpool playground {TCP}\n")


def test_default_addresses_are_of_this_machine_and_need_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    every = module._addresses()
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    plain = module._addresses()
    assert len(every) == 3 and every[:2] == plain
    assert all("127.0.0.1" in url for url in every)


def test_playground_needs_no_optional_package() -> None:
    # Blocks the imports of packages that only extras install.
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['pyarrow', 'websockets', 'uvloop', 'numpy', 'h2', 'pandas']))\n"
        "import weirpool.playground.service\n"
    )
    result = subprocess.run(
        [command()[0], "-c", code], capture_output=True, text=True, timeout=SECONDS, env=dict(os.environ)
    )
    assert (result.returncode, result.stderr) == (0, "")
