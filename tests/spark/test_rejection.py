from __future__ import annotations

import pytest

from weirpool import ApplicationError, Undelivered
from weirpool.spark import rejection as module
from weirpool.spark.rejection import Letters, Rejection, code_of, shown


def rejection(index: int, data: bytes = b"geheim") -> Rejection:
    return Rejection(2, index, "0x301", "no room", data, None)


def test_an_error_shows_where_and_why_but_not_the_row() -> None:
    assert shown(rejection(7)) == "row 7: [0x301] no room"
    assert (code_of(ApplicationError(0x301)), code_of(ApplicationError("FULL"))) == ("0x301", "FULL")


def test_letters_are_bounded_by_number_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = Letters(2)
    letters.add(rejection(0))
    letters.add(rejection(1))
    with pytest.raises(Undelivered, match='rejected 3 rows of partition 2, more than "maxDeadLetters"'):
        letters.add(rejection(2))
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    with pytest.raises(Undelivered):
        Letters(100).add(rejection(0, bytes(11)))
