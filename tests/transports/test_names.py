from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading

import pytest

from weirpool.transports import names
from weirpool.transports.names import addresses_of

SECONDS = 30
LEAVING = """
import asyncio, socket, threading
from weirpool.aio.loop import run
from weirpool.transports.names import addresses_of

looking = threading.Event()

def hang(host, port, **named):
    if named.get("flags"):
        raise socket.gaierror(-2, "a name")
    looking.set()
    threading.Event().wait()

socket.getaddrinfo = hang

async def main():
    task = asyncio.ensure_future(addresses_of("host", 1, socket.SOCK_STREAM))
    await asyncio.to_thread(looking.wait)
    task.cancel()

run(main())
"""


class Resolver:
    """Answers look-ups of names when it may."""

    def __init__(self) -> None:
        self.answer, self.looking = threading.Event(), threading.Semaphore(0)

    def __call__(self, host: str, port: int, *, type: int, flags: int = 0) -> list[str]:
        if flags:
            raise socket.gaierror(-2, "a name")
        self.looking.release()
        assert self.answer.wait(SECONDS)
        return [host]


async def test_look_ups_without_an_answer_take_no_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "THREADS", 40)
    monkeypatch.setattr(names, "_threads", names._Threads())
    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    found = [asyncio.ensure_future(addresses_of(f"h{number}", 1, socket.SOCK_STREAM)) for number in range(50)]
    await asyncio.sleep(0)
    # More than the loop has threads.
    assert await asyncio.to_thread(lambda: all(resolver.looking.acquire(timeout=SECONDS) for _ in range(40)))
    found[-1].cancel()
    resolver.answer.set()
    answers = await asyncio.gather(*found, return_exceptions=True)
    assert answers[:-1] == [[f"h{number}"] for number in range(49)]
    assert isinstance(answers[-1], asyncio.CancelledError)


async def test_addresses_need_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_threads", None)
    for host in ("127.0.0.1", "::1"):
        assert (await addresses_of(host, 5, socket.SOCK_STREAM))[0][4][:2] == (host, 5)


async def test_names_without_an_address_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise socket.gaierror(-2, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    for _ in range(3):
        with pytest.raises(OSError, match="unknown"):
            await addresses_of("host", 1, socket.SOCK_STREAM)


def test_process_ends_although_a_name_has_no_answer() -> None:
    assert subprocess.run([sys.executable, "-c", LEAVING], timeout=SECONDS, check=False).returncode == 0
