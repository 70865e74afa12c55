from __future__ import annotations

from pathlib import Path

from tests.archive.logs import fill, seal_all
from tests.objects.stores import numbers
from weirpool.archive import SealOptions
from weirpool.archive.stores import is_elsewhere, journal_store
from weirpool.journal import Journal


def test_sealed_segments_are_in_the_folder_unless_a_store_is_named(tmp_path: Path) -> None:
    assert journal_store(tmp_path).uri == str(tmp_path)
    assert journal_store(f"file://{tmp_path}").uri == str(tmp_path)
    uri = f"memory://stores-{next(numbers)}"
    assert journal_store(tmp_path, uri).uri == uri
    fill(tmp_path, 3, 4)
    seal_all(tmp_path, SealOptions(store=uri))
    assert journal_store(tmp_path).uri == uri


def test_a_store_is_elsewhere_unless_it_is_the_journal(tmp_path: Path) -> None:
    assert not is_elsewhere(journal_store(tmp_path), tmp_path)
    assert is_elsewhere(journal_store(tmp_path, str(tmp_path / "other")), tmp_path)
    assert is_elsewhere(journal_store(tmp_path, "memory://other"), tmp_path)


def test_a_log_in_a_store_has_rows_already() -> None:
    # `weirpool journal ls` asks every log, also those of a store whose URI only an object store understands.
    assert not Journal("s3://lake/quotes?endpoint=http://127.0.0.1:1&region=eu").is_awaited("quotes")
