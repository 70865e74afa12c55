"""Checks in seconds that an installation works: ``python smoke.py [--compiled]``. Needs only the installed package.

Every wheel is tested with it before it is published. It imports nothing of this folder, so it can be run anywhere.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import weirpool
from weirpool import ApplicationError, Payload, Settings, typed
from weirpool.playground.service import Quote, Symbol, service

ITEMS = 20_000
SECONDS = 60.0


async def check_text(url: str) -> None:
    """Make requests of every kind over a socket of this machine."""
    async with weirpool.serve(service, url) as server, weirpool.connect(server.urls[0]) as peer:
        assert await peer.call("echo", "hello") == Payload(b"hello")
        async with peer.stream("count", str(ITEMS)) as items:
            assert [item.data async for item in items] == [b"%d" % number for number in range(ITEMS)]
        assert (await peer.upload("sum", "", (str(number) for number in range(101)))).data == b"5050"
        async with peer.channel("double", "", ["1", "2"]) as items:
            assert [item.data async for item in items] == [b"2", b"4"]
        try:
            await peer.call("fail")
        except ApplicationError as error:
            assert error.code == 0x301
        else:
            raise AssertionError("an error of a handler did not arrive")


async def check_values(url: str, settings: Settings | None = None) -> None:
    """Call a typed handler."""
    async with weirpool.serve(service, url) as server, weirpool.connect(server.urls[0], settings=settings) as peer:
        assert await typed(peer).call("quotes.latest", Symbol("ACME"), returns=Quote) == Quote("ACME", 100.0)


async def check() -> None:
    """Run all checks within a time limit."""
    async with asyncio.timeout(SECONDS):
        for transport in ("tcp://127.0.0.1:0", "memory://smoke"):
            await check_text(f"rsocket+{transport}")
        await check_values("rsocket+tcp://127.0.0.1:0", Settings(data_mime="application/json"))
        await check_values("river+tcp://127.0.0.1:0")


def command(*arguments: str) -> str:
    """Run the command line, and return what it prints."""
    line = [sys.executable, "-m", "weirpool", *arguments]
    return subprocess.run(line, check=True, capture_output=True, text=True, timeout=SECONDS).stdout


def main() -> None:
    """Check everything, or fail with a traceback."""
    if "--compiled" in sys.argv[1:]:
        assert weirpool.ACCELERATED, "this is the plain build, although the compiled one was expected"
    weirpool.run(check())
    assert command("--version") == f"weirpool {weirpool.__version__}\n"
    assert "CANCEL" in command("decode", "000000012400")
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    build = "compiled" if weirpool.ACCELERATED else "plain"
    print(f"smoke test passed: weirpool {weirpool.__version__}, {build}, Python {sys.version.split()[0]}, GIL {gil}")


if __name__ == "__main__":
    main()
