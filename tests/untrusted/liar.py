"""A server that describes itself with what a file contains, and answers everything with a text. Prints its URL."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import weirpool
from weirpool import ApplicationError, Payload, Service
from weirpool.kinds import Kind

__all__ = ["lying"]


@contextmanager
def lying(description: bytes, folder: Path, answer: str = "", url: str = "rsocket+tcp://127.0.0.1:0") -> Iterator[str]:
    """Run such a server in a process of its own; yield its URL."""
    (folder / "description").write_bytes(description)
    (folder / "answer").write_text(answer, "utf-8")
    command = [sys.executable, "-m", "tests.untrusted.liar", str(folder), url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


class _Liar(Service):
    """Has a handler for every route."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        text = (folder / "answer").read_text("utf-8")

        @self.call("weirpool.describe")
        def describe(request: Payload) -> Payload:
            return Payload((folder / "description").read_bytes())

        @self.call("text")
        def answered(request: Payload) -> Payload:
            return Payload(text.encode())

        @self.call("error")
        def failed(request: Payload) -> Payload:
            raise ApplicationError(0x301, text, text.encode())

    def find(self, kind: int, route: str, calls_by_streams: bool = False):  # type: ignore[no-untyped-def]
        """Return the handler of a request: the same one for all routes that it does not know."""
        return super().find(kind, route, calls_by_streams) or super().find(Kind.CALL, "text")


async def _main(folder: Path, url: str) -> None:
    async with weirpool.serve(_Liar(folder), url) as server:
        print(server.urls[0], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), sys.argv[2]))
