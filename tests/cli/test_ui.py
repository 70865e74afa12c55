"""`weirpool ui` as a process: what it prints, how it ends, and what it repeats in texts to copy."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import pytest
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.cli.conftest import SECONDS, Weirpool, assert_one_line, command


def copied(*options: str, environment: dict[str, str] | None = None) -> dict[str, str]:
    """Run `weirpool ui` with options; return the texts of a call to copy."""
    url = "rsocket+tcp://127.0.0.1:1"
    with subprocess.Popen(
        command("ui", url, "--no-open", *options), stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        page = process.stdout.readline().split()[-1]
        parts = urlsplit(page)
        assert build_opener(ProxyHandler({})).open(page, timeout=SECONDS).status == 200
        origin = Origin(f"http://{parts.netloc}")
        with connect(f"ws://{parts.netloc}{parts.path}socket", origin=origin, proxy=None) as socket:
            socket.send(json.dumps({"op": "copy", "kind": "call", "route": "a.b", "data": '{"a": 1}'}))
            message: dict[str, str] = {}
            while message.get("type") != "copied":
                message = json.loads(socket.recv(timeout=SECONDS))
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    return message


def test_serves_the_page_until_it_is_stopped() -> None:
    texts = copied()
    assert texts["command"] == (
        """weirpool call rsocket+tcp://127.0.0.1:1 a.b -d '{"a": 1}' --data-mime application/json"""
    )
    assert "client.call('a.b', {'a': 1})" in texts["python"]


def test_options_are_repeated_and_secrets_of_the_environment_are_not(tmp_path: Path) -> None:
    import os

    token = tmp_path / "token"
    token.write_text("secret")
    texts = copied("--data-mime", "text/plain", "--auth", f"bearer:@{token}", "--set", "credit=5")
    assert texts["command"].endswith(f"--data-mime text/plain --set credit=5 --auth bearer:@{token}")
    texts = copied(environment={**os.environ, "WEIRPOOL_AUTH": "bearer:hidden"})
    assert "hidden" not in str(texts)
    texts = copied("--auth", "bearer:known")
    assert "known" not in str(texts) and "--auth '(hidden)'" in texts["command"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("rsocket+tcq://127.0.0.1:1",), "did you mean 'tcp'?"),
        (("river+tcp://127.0.0.1:1", "--auth", "bearer:x"), "--auth needs"),
        (("rsocket+tcp://127.0.0.1:1", "--insecure"), "not encrypted"),
        (("rsocket+tcp://127.0.0.1:1", "--port", "70000"), "--port"),
    ],
)
def test_wrong_use_is_exit_code_2(weirpool: Weirpool, arguments: tuple[str, ...], part: str) -> None:
    result = weirpool("ui", *arguments, "--no-open")
    assert result.code == 2 and part in result.err
    assert_one_line(result)
