"""The interfaces of a journal, and those who offer them."""

from __future__ import annotations

import pytest

from penstock.archive import ArchiveReader
from penstock.journal.coordinator import FolderCoordinator
from penstock.journal.ports import Coordinator, LogReader
from penstock.journal.reader import JournalReader

from .offers import check_offered

OFFERS = [(LogReader, JournalReader), (LogReader, ArchiveReader), (Coordinator, FolderCoordinator)]


@pytest.mark.parametrize(("port", "offered"), OFFERS)
def test_everything_is_offered_with_the_same_arguments(port: type, offered: type) -> None:
    check_offered(port, offered)
