"""The interfaces of a journal, and those who offer them."""

from __future__ import annotations

import pytest

from weirpool.archive import ArchiveReader
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.ports import Coordinator, LogReader
from weirpool.journal.reader import JournalReader

from .offers import check_offered

OFFERS = [(LogReader, JournalReader), (LogReader, ArchiveReader), (Coordinator, FolderCoordinator)]


@pytest.mark.parametrize(("port", "offered"), OFFERS)
def test_everything_is_offered_with_the_same_arguments(port: type, offered: type) -> None:
    check_offered(port, offered)
