"""Runs the programs of ``docs/how-to/spring.md`` against each other: ``python -m interop.spring``.

Spring's client talks to the Python service, and the Python client to Spring's service. Each line that a client
prints is a check. It prints one JSON object with the results.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .peers import ROOT

__all__ = ["EXAMPLE", "LINES", "checked"]

EXAMPLE = ROOT / "examples" / "spring"
JAVA = "java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp target/classes:target/dependency/*".split()
LINES = {
    "call": "latest: ACME 100.00",
    "stream": "stream: 100",
    "channel": "channel: 5050",
    "simple credentials": "admin: grace",
    "bearer credentials": "admin: robot",
    "credentials denied": "denied: 3",
    "cancel": "canceled after 10",
    "error": "error: refused: count must not be negative",
}
"""What a client prints for each check."""
PORT = re.compile(r"(?:listening on|started on port) .*?(\d+)/?$")
TIMEOUT = 120.0
"""Seconds for a client; a JVM starts slowly on a busy machine."""


def checked(output: str) -> dict[str, str]:
    """Return the result of each check, from what a client has printed."""
    lines = output.splitlines()
    return {name: "ok" if line in lines else f"not printed: {line}" for name, line in LINES.items()}


@contextmanager
def _serving(command: list[str]) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a service while the block lasts. Yield its port and its process."""
    process = subprocess.Popen(command, cwd=EXAMPLE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            found = PORT.search(line.rstrip())
            if found is not None:
                yield found[1], process
                return
        raise AssertionError(f"{command[-2:]} did not start")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _run(command: list[str]) -> str:
    done = subprocess.run(command, cwd=EXAMPLE, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False)
    return done.stdout


def _printed(process: subprocess.Popen[str], wanted: str) -> str:
    """Return the result of a request that has no response, or of a set-up: the service prints its data, in order."""
    assert process.stdout is not None
    what = wanted.partition(": ")[0] + ": "
    line = next((line for line in process.stdout if line.startswith(what)), "")
    return "ok" if line == f"{wanted}\n" else f"not printed: {wanted}, but {line!r}"


def main() -> None:
    """Run both pairings, and print the results."""
    results: dict[str, str] = {}
    with _serving([*JAVA, "example.Quotes", "--spring.rsocket.server.port=0"]) as (port, process):
        for mime in ("application/cbor", "application/json"):
            output = _run([sys.executable, "client.py", f"rsocket+tcp://127.0.0.1:{port}", mime])
            results |= {f"{mime.rpartition('/')[2]} {name}": result for name, result in checked(output).items()}
            results[f"{mime.rpartition('/')[2]} set-up data"] = _printed(process, "connected: Python")
        results["fire"] = _printed(process, "noted: hello")
        wrong = _run([sys.executable, "client.py", f"rsocket+tcp://127.0.0.1:{port}", "application/cbor", "wrong"])
        results["wrong password"] = "ok" if wrong.startswith("refused: ") else f"printed: {wrong[:80]}"
    with _serving([sys.executable, "service.py", "rsocket+tcp://127.0.0.1:0"]) as (port, process):
        output = _run([*JAVA, "example.Client", port])
        results |= {f"Spring client {name}": result for name, result in checked(output).items()}
        results["Spring client set-up data"] = _printed(process, "connected: Spring")
        results["Spring client fire"] = _printed(process, "noted: hello")
        wrong = _run([*JAVA, "example.Client", port, "wrong"])
        results["Spring client wrong password"] = "ok" if wrong.startswith("refused: ") else f"printed: {wrong[:80]}"
    print(json.dumps({"peer": "spring", "role": "both", "checks": results}), flush=True)


if __name__ == "__main__":
    # Who ends this program also ends the services.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
