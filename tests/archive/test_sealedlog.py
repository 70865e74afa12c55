from __future__ import annotations

from pathlib import Path

import pytest

from tests.archive.logs import fill, seal_all
from tests.journal.logs import SOURCE
from weirpool.archive.sealedlog import SealedLog
from weirpool.archive.stores import journal_store
from weirpool.errors import JournalMissing
from weirpool.journal.layout import log_folder
from weirpool.journal.sealed import load_sealed


def sealed_log(path: Path) -> SealedLog:
    state = load_sealed(log_folder(path, SOURCE))
    assert state is not None
    found = SealedLog.of_folder(str(path), SOURCE, state)
    assert found is not None
    return found


def test_it_has_the_rows_of_sealed_segments(tmp_path: Path) -> None:
    fill(tmp_path, 10, 10, 10, gaps=(1,))
    seal_all(tmp_path)
    log = sealed_log(tmp_path)
    segments = log.segments(0, log.manifest.end)
    rows = [batch for each in segments for batch in log.read(each, each.first, each.end, ["position"])]
    assert [at for batch in rows for at in batch["position"].to_pylist()] == [*range(log.manifest.end)]
    assert [gap.position for gap in log.gaps()] == [10]


def test_it_is_found_in_a_store(tmp_path: Path) -> None:
    fill(tmp_path, 10, 10)
    seal_all(tmp_path)
    uri, files = sealed_log(tmp_path).files()
    found = SealedLog.found(uri, SOURCE)
    assert found is not None
    assert found.files() == (uri, files)
    assert SealedLog.found(uri, "another") is None


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    fill(tmp_path, 10, 10)
    seal_all(tmp_path)
    log = sealed_log(tmp_path)
    store = journal_store(tmp_path)
    for name, _ in store.list(f"{log.where.removeprefix(store.uri).strip('/')}/_manifest"):
        store.delete([name])
    with pytest.raises(JournalMissing, match="manifest of positions up to"):
        sealed_log(tmp_path)
