"""Sizes are reported, and names of several things are found."""

from __future__ import annotations

import pytest
from walk.__main__ import report
from walk.sizes import repeated_classes, repeated_modules, rooms, sizes, splinters
from walk.sources import Source

SOURCES = [
    Source("urls.py", "#\n" * 1_001),
    Source("aio/__init__.py", ""),
    Source("aio/driver.py", "from .part import Part\nfrom ..urls import Url\n" + "#\n" * 150),
    Source("aio/part.py", "class Part: ..."),
    Source("aio/shared.pxd", "#\n" * 9),
]


def test_sizes_are_those_of_python() -> None:
    assert sizes(SOURCES) == {
        "modules in src": 4,
        "lines in src": 1_154,
        "lines of the median module": 76,
        "lines of the largest module": 1_001,
        "modules below 100 lines": 2,
        "of them imported by one neighbor alone": 1,
    }
    assert rooms(SOURCES) == {".": (1, 1_001), "aio": (3, 153)}


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ([], ["aio/part.py"]),
        ([Source("cli/other.py", "from ..aio.part import Part")], []),
        ([Source("aio/other.py", "def f():\n    from .part import Part")], []),
    ],
)
def test_a_splinter_has_one_importer_in_its_folder(more: list[Source], found: list[str]) -> None:
    assert splinters(SOURCES + more) == found


def test_a_module_of_any_length_but_a_thousand_lines_is_only_reported() -> None:
    told = report([*SOURCES, Source("aio/fresh.py", "#\n" * 50)], verbose=True)
    assert "modules in src                                       5" in told
    assert "    aio/part.py\n" in told
    assert "aio                                                  4 modules     203 lines" in told


def test_names_of_several_modules_and_classes_are_found() -> None:
    sources = [
        Source("spark/rows.py", "class State: ..."),
        Source("schema/rows.py", "class State:\n    class Inner: ..."),
        Source("aio/rows.py", "class Inner: ..."),
        Source("aio/peer.py", "class Peer: ..."),
    ]
    assert repeated_modules(sources) == ["rows (3)"]
    assert repeated_classes(sources) == ["State (2)"]


def test_protocols_and_the_mirrored_api_may_have_the_same_names() -> None:
    sources = [
        Source("rsocket/session.py", "class Session: ..."),
        Source("protocols/river/session.py", "class Session: ..."),
        Source("aio/peer.py", "class Peer: ..."),
        Source("sync/peer.py", "class Peer: ..."),
    ]
    assert repeated_modules(sources) == repeated_classes(sources) == []
    assert repeated_modules([*sources, Source("session.py", "")]) == ["session (2)"]
