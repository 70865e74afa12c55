"""``python -m pytest interop/conformance.py``: h2spec and Autobahn's wstest, which must be installed."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from weirpool import Service, Settings, serve
from weirpool.transports import Discard, Link, listen
from weirpool.urls import parse_url

SECONDS = 300
# These requests are answered at once and without a body, so that streams are not open when h2spec expects it.
H2_NO_BODY = {"generic/2/2", "generic/2/3"}
H2_ANSWERED = {"http2/5.1.2/1"}
# Its 20 kB of headers exceed the default size of a frame, but not the one that the server has announced.
H2_LARGE_FRAMES = {"http2/4.2/3"}
WS_TEXT = {"5.3", "5.4", "5.5", "5.6", "5.7", "5.8", "5.19", "5.20", "7.1.1", "7.1.5"}
"""Text messages, which are refused: all protocols are binary."""
WS_LAST_PING = {"2.10", "2.11"}
"""Of several pings that arrive together only the last one is answered (RFC 6455, section 5.5.3)."""


async def run(*program: str | Path, cwd: Path) -> str:
    """Return the output of a program."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = await asyncio.create_subprocess_exec(
        *program, cwd=cwd, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(SECONDS):
            output, _ = await process.communicate()
    except BaseException:
        process.kill()
        raise
    return output.decode(errors="replace")


def test_http2_conforms(tmp_path: Path) -> None:
    asyncio.run(_check_http2(tmp_path))


async def _check_http2(tmp_path: Path) -> None:
    async with serve(Service(), "rsocket+h2c://127.0.0.1:0/r") as server:
        port = str(parse_url(server.urls[0]).port)
        output = await run("h2spec", "-p", port, "-P", "/r", "-j", tmp_path / "report.xml", cwd=tmp_path)
    assert failed_of(tmp_path / "report.xml") <= H2_NO_BODY | H2_ANSWERED | H2_LARGE_FRAMES, output


def failed_of(report: Path) -> set[str]:
    """Return the failed cases of a report of h2spec, as SPECIFICATION/SECTION/NUMBER."""
    from xml.etree import ElementTree

    failed = set()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        for number, case in enumerate(suite.iter("testcase"), 1):
            if case.find("failure") is not None or case.find("error") is not None:
                failed.add(f"{case.get('package')}/{number}")
    return failed


class Echo(Discard):
    """Sends what it receives."""

    link: Link

    def link_made(self, link: Link) -> None:
        self.link = link

    def received(self, data: bytes) -> None:
        if data:
            self.link.write(bytes(data))


def test_websocket_conforms(tmp_path: Path) -> None:
    asyncio.run(_check_websocket(tmp_path))


async def _check_websocket(tmp_path: Path) -> None:
    settings = Settings(max_empty_fragments=100_000)
    listener = await listen(parse_url("river+ws://127.0.0.1:0/"), lambda *_: Echo(), settings)
    servers = [{"agent": "weirpool", "url": f"ws://127.0.0.1:{listener.url.port}/"}]
    cases = {"cases": ["1.2.*", "2.*", "3.*", "4.*", "5.*", "7.*"], "exclude-cases": [], "exclude-agent-cases": {}}
    (tmp_path / "spec.json").write_text(json.dumps({"outdir": "reports", "servers": servers, **cases}))
    try:
        output = await run("wstest", "-m", "fuzzingclient", "-s", "spec.json", cwd=tmp_path)
    finally:
        await listener.close()
    results = json.loads((tmp_path / "reports" / "index.json").read_text())["weirpool"]
    assert len(results) > 90, output
    fine = {"OK", "NON-STRICT", "INFORMATIONAL"}
    # Not the code of the close: cases that begin with a text message end with 1003.
    failed = {case for case, result in results.items() if result["behavior"] not in fine}
    assert failed <= WS_TEXT | WS_LAST_PING
