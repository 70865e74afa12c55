"""Journals that collectors serve, as the journal's package finds them; `tests/serving` tests what they do."""

from __future__ import annotations

from weirpool.journal.ports import Coordinator
from weirpool.journal.served import ServedJournal, served_coordinator, served_journal

from .offers import check_offered

URL = "rsocket+tcp://127.0.0.1:1"


def test_both_are_found_and_offer_what_is_needed() -> None:
    check_offered(ServedJournal, type(served_journal(URL)))
    check_offered(Coordinator, type(served_coordinator(URL)))
    assert served_journal(URL) is served_journal(URL)
