"""What is said between a collector and its clients."""

from __future__ import annotations

import pytest

from weirpool import errors
from weirpool.errors import ApplicationError, DataLost, Invalid, JournalError
from weirpool.serving.messages import Named, answered, decode, error_of, failure, refusal_of


@pytest.mark.parametrize(
    "name",
    ["JournalError", "JournalCorrupt", "JournalLocked", "JournalMismatch", "JournalMissing", "DataLost", "DiskFull"],
)
def test_errors_keep_their_kind(name: str) -> None:
    kind = getattr(errors, name)
    sent = failure(kind("positions 1: gone"))
    assert type(sent) is ApplicationError
    found = error_of(sent.message, "there")
    assert type(found) is kind and str(found) == "there: positions 1: gone"


def test_an_unknown_error_is_one_of_the_journal() -> None:
    class Newer(DataLost):
        pass

    assert type(error_of(failure(Newer("x")).message, "there")) is DataLost
    assert type(error_of("the handler failed", "there")) is JournalError


def test_junk_is_refused_on_both_sides() -> None:
    for data in (b"", b"[", b"{}", b"\xff", b"[" * 100_000):
        with pytest.raises(Invalid, match="not a request"):
            decode(data, Named)
        with pytest.raises(JournalError, match="not one"):
            answered(data, Named)


def test_a_refusal_may_name_an_error() -> None:
    found = refusal_of("the server rejected the set-up: REJECTED_SETUP: JournalMissing: gone", "there")
    assert type(found) is errors.JournalMissing and str(found) == "there: gone"
    assert refusal_of("no valid token", "there") is None
