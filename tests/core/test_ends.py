from __future__ import annotations

from weirpool.core.ends import Ends
from weirpool.errors import LimitExceeded, LinkLost, ProtocolError

FULL = LimitExceeded("full")


def test_reason_is_only_returned_to_its_client() -> None:
    ends = Ends(10)
    ends.note(b"name", b"key", FULL)
    assert ends.reason(b"name", b"key") == "the session has ended: full"
    assert ends.reason(b"name", b"another") == ends.reason(b"other", b"key") == ""


def test_ends_caused_by_the_client_are_not_remembered() -> None:
    ends = Ends(10)
    ends.note(b"name", b"", None)
    ends.note(b"name", b"", ProtocolError("junk"))
    assert ends.reason(b"name", b"") == ""
    ends.note(b"name", b"", LinkLost("too long"))
    assert "too long" in ends.reason(b"name", b"")


def test_oldest_end_is_forgotten_first() -> None:
    # THREATS 94
    ends = Ends(2)
    for name in (b"a", b"b", b"c"):
        ends.note(name, b"", FULL)
    assert [bool(ends.reason(name, b"")) for name in (b"a", b"b", b"c")] == [False, True, True]
