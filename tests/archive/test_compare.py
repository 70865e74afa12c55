from __future__ import annotations

import shutil
from pathlib import Path

from tests.archive.logs import fill, seal_all
from tests.journal.logs import SOURCE
from tests.objects.stores import numbers
from weirpool.archive import SealOptions
from weirpool.archive.compare import compare_sealed


def copies(path: Path) -> tuple[Path, Path]:
    """Return two equal logs of six rows, of which the first one is sealed in part."""
    one, two = path / "one", path / "two"
    fill(one, 1, 2, 3, gaps=(1, 2))
    shutil.copytree(one, two)
    seal_all(one)
    return one, two


def test_either_form_has_the_same_digests(tmp_path: Path) -> None:
    one, two = copies(tmp_path)
    for pair in ((one, two), (two, one)):
        found = compare_sealed(*pair, SOURCE)
        assert (found.agree, found.end) == (True, 6)
    fill(two, 4)
    found = compare_sealed(one, two, SOURCE)
    assert found.agree and found.text.endswith("two/source=s continues to 10")


def test_the_first_difference_is_found(tmp_path: Path) -> None:
    one, two = copies(tmp_path)
    for path in (one, two):
        fill(path, 4, 5)
    seal_all(one)
    found = compare_sealed(one, two, SOURCE)
    assert (found.agree, found.end) == (False, 6)
    assert "differs from this copy between positions 6 and 9" in found.text


def test_other_logs_and_other_rows_do_not_agree(tmp_path: Path) -> None:
    one, two = copies(tmp_path)
    fill(tmp_path / "three", 1, 2, 3)
    assert "is another log" in compare_sealed(one, tmp_path / "three", SOURCE).text
    uri = f"memory://compare-{next(numbers)}"
    seal_all(two, SealOptions(target_bytes=1, store=uri))
    found = compare_sealed(one, uri, SOURCE, stored=(False, True))
    assert (found.agree, found.end) == (True, 3)
