from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import weirpool

SMOKE = Path(__file__).parent / "smoke.py"


def run_smoke(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", str(SMOKE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | variables)


def test_smoke_test_passes() -> None:
    result = run_smoke()
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"smoke test passed: weirpool {weirpool.__version__}")


def test_smoke_test_fails_on_the_plain_build_if_the_compiled_one_is_expected() -> None:
    result = run_smoke("--compiled", WEIRPOOL_PURE="1")
    assert result.returncode == 1
    assert "this is the plain build" in result.stderr


# What Windows lacks, as far as this machine can do without it.
WITHOUT_POSIX = """
import asyncio, os, socket, sys

sys.modules.update(dict.fromkeys(["fcntl", "grp", "pwd", "resource", "termios", "uvloop"]))

def refuse(*arguments):
    raise NotImplementedError

asyncio.SelectorEventLoop.add_signal_handler = refuse
pairs = socket.socketpair
socket.socketpair = lambda: pairs(UNIX)
UNIX = socket.AF_UNIX
for name in ("fork", "getuid", "fchmod", "register_at_fork"):
    delattr(os, name)
del socket.AF_UNIX, socket.SO_REUSEPORT
"""


def test_smoke_test_passes_without_what_windows_lacks() -> None:
    # Its commands would run in processes that lack nothing.
    code = f"{WITHOUT_POSIX}\nsys.path.insert(0, {str(SMOKE.parent)!r})\nimport smoke\nasyncio.run(smoke.check())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")


def test_command_ends_on_ctrl_c_without_what_windows_lacks() -> None:
    code = f"{WITHOUT_POSIX}\nfrom weirpool.cli.main import run; run(['playground', 'rsocket+tcp://127.0.0.1:0'])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            while (line := process.stdout.readline()) not in ("Ctrl-C stops it\n", ""):
                pass
            assert line, process.stderr.read()
            process.send_signal(signal.SIGINT)
            assert (process.wait(60), process.stderr.read()) == (0, "")
        finally:
            process.kill()
