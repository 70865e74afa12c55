from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.archive.logs import catalog, fill, seal_all
from tests.journal.logs import SOURCE, flip
from tests.objects.stores import numbers
from weirpool.archive import SealOptions, verify_sealed
from weirpool.archive.verify import add_sealed
from weirpool.errors import JournalMissing
from weirpool.journal.storage import LogFolder
from weirpool.journal.verify import verify


def test_sound_files_have_no_problems(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4, 5)
    assert verify_sealed(tmp_path, SOURCE) == []
    seal_all(tmp_path)
    assert verify_sealed(tmp_path, SOURCE) == []


def test_every_damaged_file_is_named(tmp_path: Path) -> None:
    folder = fill(tmp_path, 3, 4, 5, 6)
    seal_all(tmp_path)
    one, two, three = sorted(folder.glob("*.parquet"))
    flip(one, 700)
    two.unlink()
    problems = verify_sealed(tmp_path, SOURCE)
    assert len(problems) == 2
    assert one.name in problems[0] and "positions 0 to 2" in problems[0]
    assert two.name in problems[1] and "positions 3 to 6" in problems[1] and three.exists()


def test_a_store_alone_is_verified(tmp_path: Path) -> None:
    uri = f"memory://verify-{next(numbers)}"
    fill(tmp_path, 3, 4)
    seal_all(tmp_path, SealOptions(store=uri))
    assert verify_sealed(uri, SOURCE) == []
    with pytest.raises(JournalMissing, match="no sealed segments"):
        verify_sealed(f"{uri}-other", SOURCE)


def test_rows_in_both_forms_count_once(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4, 5)
    seal_all(tmp_path, SealOptions(target_bytes=1, local_bytes=1 << 40))
    report = verify(LogFolder.of(tmp_path, SOURCE), SOURCE)
    add_sealed(report, tmp_path, stored=False)
    assert (report.first, report.end, report.rows, report.sealed, report.problems) == (0, 12, 12, 7, [])


def test_a_manifest_with_other_checksums_is_a_problem(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4)
    seal_all(tmp_path)
    found = catalog(tmp_path)
    manifest = found.newest()
    assert manifest is not None
    (segment,) = manifest.segments
    for change in ({"chunks": bytes(len(segment.chunks))}, {"times": (0, 1)}, {"footer": "0" * 32}):
        wrong = msgspec.structs.replace(segment, **change)
        manifest = manifest.successor(segments=[wrong])
        assert found.publish(manifest)
        assert len(verify_sealed(tmp_path, SOURCE)) == 1
