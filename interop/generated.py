"""Generates TypeScript clients from a service, compiles them strictly, and runs programs that use them."""

from __future__ import annotations

import sys
from pathlib import Path

import weirpool
from weirpool import Settings

from .processes import run_checks, run_tool

__all__ = ["generated"]

PROGRAMS = {
    "rsocket": ("rsocket+ws://127.0.0.1:0/", "rsocket"),
    "river": ("river+ws://127.0.0.1:0/?codec=msgpack", "river-1.1"),
}
"""The programs: the URL to serve, and the library that their client is generated for."""
SECONDS = 120.0
"""Time limit for one program, on a busy machine."""


async def generated(folder: Path) -> dict[str, str]:
    """Return the results of all checks.

    Args:
        folder: The folder with the service and the programs, whose packages are installed.

    Raises:
        ProcessFailed: A client is not generated, does not compile, or a program ended without results.

    """
    (folder / "generated").mkdir(exist_ok=True)
    codegen = [sys.executable, "-m", "weirpool", "codegen", "quotes.py:service"]
    for name, (_, library) in PROGRAMS.items():
        await run_tool([*codegen, "--ts", library, "-o", f"generated/{name}.ts"], folder, SECONDS)
    await run_tool(["node", "node_modules/typescript/bin/tsc", "-p", "."], folder, SECONDS)
    from .typescript.quotes import service

    urls = [url for url, _ in PROGRAMS.values()]
    results: dict[str, str] = {}
    async with weirpool.serve(service, *urls, settings=Settings(river_v1_1=True)) as server:
        for name, url in zip(PROGRAMS, server.urls, strict=True):
            command = ["node", f"built/{name}.js", url.partition("+")[2].partition("?")[0]]
            results |= await run_checks(command, folder, name, SECONDS)
    return results
