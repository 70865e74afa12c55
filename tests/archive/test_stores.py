from __future__ import annotations

from pathlib import Path

from penstock.archive import SealOptions
from penstock.archive.stores import journal_store
from tests.archive.logs import fill, seal_all
from tests.objects.stores import numbers


def test_sealed_segments_are_in_the_folder_unless_a_store_is_named(tmp_path: Path) -> None:
    assert journal_store(tmp_path).uri == str(tmp_path)
    assert journal_store(f"file://{tmp_path}").uri == str(tmp_path)
    uri = f"memory://stores-{next(numbers)}"
    assert journal_store(tmp_path, uri).uri == uri
    fill(tmp_path, 3, 4)
    seal_all(tmp_path, SealOptions(store=uri))
    assert journal_store(tmp_path).uri == uri
