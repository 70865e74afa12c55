"""A protocol's name counts in code above the waist, and in prose nowhere."""

from __future__ import annotations

import pytest
from walk.names import protocols_named
from walk.sources import Source


@pytest.mark.parametrize(
    "code",
    [
        'MALFORMED = {"river": 1}',
        "from ..rsocket.composite import Metadata",
        "from . import river",
        "import weirpool.reactivestreams",
        "class RiverSession: ...",
        "is_river = True",
        "RIVER = 1",
        "def serve_reactive_streams(): ...",
        "session.rsocket",
        'content_type = f"application/{x}.rsocket"',
        'ALPN = b"rsocket"',
        'raise ValueError("RSocket has none")',
        'run(protocol="reactivesocket-0.2")',
        "def connect(river): ...",
    ],
)
def test_name_in_code_is_found(code: str) -> None:
    assert protocols_named([Source("aio/typed.py", f"import asyncio\n{code}\n")]) == ["aio/typed.py:2"]


@pytest.mark.parametrize(
    "text",
    [
        '"""RSocket and River."""',
        "# RSocket 1.0, Error Codes",
        'def leave():\n    """What River calls cancel."""',
        'LIMIT = 1\n"""As RSocket has it."""',
        'typer.Option("--codec", help="River: how values are written.")',
        "from .driver import Driver\n\nclass WatchedDriver(Driver): ...",
        "DRIVER = driven_by = 1",
        "from ..reactive import interfaces",
    ],
)
def test_prose_and_drivers_are_let_be(text: str) -> None:
    assert protocols_named([Source("aio/typed.py", text)]) == []


@pytest.mark.parametrize("path", ["rsocket/session.py", "wire/river.py", "protocols.py", "settings.py", "errors.py"])
def test_files_that_may_name_protocols_do(path: str) -> None:
    assert protocols_named([Source(path, 'NAME = "rsocket"')]) == []


@pytest.mark.parametrize("path", ["urls.py", "cli/frames.py", "transports/http2.py", "aio/settings.py"])
def test_all_other_files_must_not(path: str) -> None:
    assert protocols_named([Source(path, 'NAME = "rsocket"')]) == [f"{path}:1"]


def test_cython_is_read_by_its_tokens() -> None:
    prose = '"""RSocket."""\n# River\ncdef int driver\n'
    assert protocols_named([Source("transports/reading.pyx", prose)]) == []
    assert protocols_named([Source("transports/reading.pyx", prose + "cdef int river_size\n")]) == [
        "transports/reading.pyx:4"
    ]
