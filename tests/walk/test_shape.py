"""Classes, functions and work-arounds are counted."""

from __future__ import annotations

import pytest
from walk.shape import chains, driver_casts, long_files, long_functions, named, raised_hooks, sniffed_sessions
from walk.sources import Source


def test_longest_chain_of_classes_is_found_across_files() -> None:
    sources = [
        Source("session.py", "class Session(Protocol): ..."),
        Source("river/links.py", "from ..session import Session\nclass Links(Session, Generic[T]): ..."),
        Source("river/session.py", "from .links import Links as Base\nclass RiverSession(Base[int]): ..."),
        Source("river/stored.py", "from . import links\nfrom .session import RiverSession\nclass S(RiverSession): ..."),
    ]
    assert chains(sources)[0] == ["river.stored:S", "river.session:RiverSession", "river.links:Links"]


def test_errors_interfaces_and_classes_of_others_add_no_depth() -> None:
    errors = Source("errors.py", "class A(Exception): ...\nclass B(A): ...\nclass C(B): ...")
    tcp = Source("tcp.py", "class Link(Protocol): ...\nclass Tcp(Link, asyncio.Protocol): ...")
    assert chains([errors, tcp]) == [["tcp:Tcp"]]


def test_types_of_a_name_are_classes_and_aliases() -> None:
    sources = [
        Source("session.py", "class Acceptor(Protocol): ..."),
        Source("aio/admission.py", "Acceptor = Callable[[Setup], Verdict]\nfrom ..session import Acceptor as A"),
        Source("aio/server.py", "Acceptor: TypeAlias = int\nclass MyAcceptor: ..."),
    ]
    assert named(sources, ["Acceptor", "Inbound"]) == {
        "Acceptor": ["session.py:1", "aio/admission.py:1", "aio/server.py:1"],
        "Inbound": [],
    }


def test_cast_to_driver_is_found() -> None:
    source = Source("a.py", 'x = cast("Driver", y)\nz = cast("Peer", y)\nw = cast(Driver | None, y)')
    assert list(driver_casts(source)) == ["a.py:1", "a.py:3"]


def test_not_implemented_hook_is_found() -> None:
    text = "def a():\n    raise NotImplementedError\ndef b():\n    raise NotImplementedError('b')\ndef c():\n    raise"
    assert list(raised_hooks(Source("a.py", text))) == ["a.py:2", "a.py:4"]


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ('getattr(driver.session, "linked_at", None)', 1),
        ('hasattr(session, "rehandshake")', 1),
        ("isinstance(self._session, Kept)", 1),
        ("isinstance(error, SessionError)", 0),
        ('getattr(session.settings, "x")', 0),
        ("session.linked_at", 0),
    ],
)
def test_session_that_is_asked_what_it_is_is_found(code: str, count: int) -> None:
    assert len(list(sniffed_sessions(Source("a.py", code)))) == count


def function(lines: int) -> Source:
    """Return a source with a method of so many lines of code, and others that do not count."""
    body = ["", "    # Why.", *["    x = 1"] * (lines - 1)]
    return Source("a.py", "\n".join(["async def f():", '    """What."""', *body]))


def test_function_is_long_by_its_lines_of_code() -> None:
    assert list(long_functions(function(40))) == []
    assert list(long_functions(function(41))) == ["a.py:1 f (41)"]


def test_file_is_long_by_all_its_lines() -> None:
    assert long_files([Source("a.py", "#\n" * 1000)]) == []
    assert long_files([Source("a.pyx", "#\n" * 1001)]) == ["a.pyx (1001)"]
