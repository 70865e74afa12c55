"""The chaos laboratory notices processes that end as they should not."""

from __future__ import annotations

import signal

import pytest
from chaos.children import End
from chaos.exits import unexpected

TERM, INT, USR1 = signal.SIGTERM, signal.SIGINT, signal.SIGUSR1


@pytest.mark.parametrize(
    ("name", "code", "sent"),
    [
        ("collector a", 0, ()),
        ("collector a", 0, (TERM,)),
        ("collector a", 130, (INT,)),
        ("collector a", 3, ()),
        ("collector a", -9, ()),
        ("collector a", -USR1, (USR1,)),
        ("publisher a", 0, (TERM,)),
        ("publisher a", 0, (INT,)),
        ("publisher a", -9, ()),
        ("publisher a", -TERM, (TERM,)),
        ("proxy", -9, ()),
        ("query", 0, ()),
    ],
)
def test_expected_ends(name: str, code: int, sent: tuple[int, ...]) -> None:
    assert unexpected([End(name, 100.0, code, sent)], []) == []


@pytest.mark.parametrize(
    ("name", "code", "sent"),
    [
        ("collector a", 1, ()),
        ("collector a", 2, ()),
        ("collector a", 130, ()),
        ("collector a", 130, (TERM,)),
        ("collector a", -11, ()),
        ("collector a", -TERM, ()),
        ("collector a", -USR1, ()),
        ("publisher a", 0, ()),
        ("publisher a", 1, (TERM,)),
        ("proxy", 1, ()),
        ("query", 1, ()),
    ],
)
def test_unexpected_ends(name: str, code: int, sent: tuple[int, ...]) -> None:
    [text] = unexpected([End(name, 100.0, code, sent)], [])
    assert name in text and str(code) in text


def test_query_fails_only_after_a_fault_of_spark() -> None:
    failed = End("query", 100.0, 1)
    assert unexpected([failed], [{"at": 90.0, "kind": "kill executor"}]) == []
    assert unexpected([failed], [{"at": 90.0, "kind": "kill collector", "target": "a"}])
    assert unexpected([failed], [{"at": 110.0, "kind": "kill executor"}])
