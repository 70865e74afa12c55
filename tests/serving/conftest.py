from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, append
from weirpool.journal import JournalWriter

from .served import Served, serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with small and large batches in several segments, which nobody changes."""
    path = tmp_path_factory.mktemp("served")
    with JournalWriter.open(path, SOURCE, segment_bytes=200_000, fsync=False) as writer:
        append(writer, 50, 3, 9_000, 1, 200, width=100)
        writer.append_gap("the publisher was replaced")
        append(writer, 700, 20, width=100)
    return path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    """A collector that serves it."""
    with serving(folder) as served:
        yield served
