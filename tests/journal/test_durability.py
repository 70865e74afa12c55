from __future__ import annotations

from pathlib import Path

import pytest

from weirpool.journal.durability import Durability, Replica, StagedLog
from weirpool.journal.redo import Redo
from weirpool.journal.writer import JournalWriter
from weirpool.replica.logs import Logs


@pytest.mark.parametrize(("port", "part"), [(Durability, Redo), (Replica, Logs)])
def test_each_part_has_all_that_its_port_names(port: type, part: type) -> None:
    names = [name for name in vars(port) if not name.startswith("_")]
    assert names and all(hasattr(part, name) for name in names)


def test_a_writer_has_all_that_is_needed_of_a_staged_log(tmp_path: Path) -> None:
    names = [name for name in vars(StagedLog) if not name.startswith("_")]
    with JournalWriter.open(tmp_path, "a", fsync=False) as writer:
        assert names and all(hasattr(writer, name) for name in names)
