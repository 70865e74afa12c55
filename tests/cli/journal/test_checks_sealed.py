"""`weirpool journal verify` on logs with sealed segments."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archive.logs import fill, seal_all
from tests.cli.conftest import Weirpool
from tests.journal.logs import SOURCE, flip
from tests.objects.stores import CREDENTIALS, new_uri, s3_server
from weirpool.archive import SealOptions
from weirpool.objects import open_store


@pytest.fixture
def uri(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A place in an emulator of S3."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with s3_server() as endpoint:
        yield new_uri(endpoint)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A log of 15 rows in five segments, of which three are sealed."""
    path = tmp_path / "journal"
    fill(path, 1, 2, 3, 4, gaps=(1, 2))
    seal_all(path)
    fill(path, 5)
    return path


def test_sealed_rows_are_verified_and_counted(weirpool: Weirpool, journal: Path) -> None:
    result = weirpool("journal", "verify", str(journal))
    assert result.code == 0
    assert result.out.startswith(b"s: 15 rows from 0 to 15 are sound, 6 of them sealed; 2 gaps; head ")
    (report,) = weirpool("journal", "verify", str(journal), "--json").objects
    assert (report["rows"], report["sealed"], report["segments"]) == (15, 6, 5)


def test_a_store_is_verified(weirpool: Weirpool, tmp_path: Path, uri: str) -> None:
    fill(tmp_path, 1, 2, 3)
    seal_all(tmp_path, SealOptions(target_bytes=1, store=uri))
    result = weirpool("journal", "verify", uri)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(b"s: 3 rows from 0 to 3 are sound, 3 of them sealed; 0 gaps; head ")
    assert weirpool("journal", "verify", uri, "--against", str(tmp_path)).code == 0
    assert weirpool("journal", "verify", str(tmp_path), "--against", uri).code == 0
    store = open_store(uri)
    store.delete(["source=s/00000000000000000001.parquet"])
    for path in (uri, str(tmp_path)):
        result = weirpool("journal", "verify", path)
        assert result.code == 1
        assert "00000000000000000001.parquet: the file is missing; positions 1 to 2 cannot be read" in result.err


@pytest.mark.parametrize("what", ["file", "missing", "manifest", "hole"])
def test_damage_is_found(weirpool: Weirpool, journal: Path, what: str) -> None:
    folder = journal / f"source={SOURCE}"
    expected = {
        "file": "the file differs from what was sealed: positions 1 to 2",
        "missing": "the file is missing; positions 1 to 2 cannot be read",
        "manifest": "restore the file from a copy of this log",
        "hole": "positions 6 to 9 are",
    }[what]
    file = folder / "00000000000000000001.parquet"
    if what == "file":
        flip(file, 700)
    elif what == "missing":
        file.unlink()
    elif what == "manifest":
        flip(max((folder / "_manifest").iterdir()), 99)
    else:
        (folder / "00000000000000000006.arrows").unlink()
    result = weirpool("journal", "verify", str(journal))
    assert result.code == 1
    assert expected in result.err


def test_sealed_and_other_rows_of_two_copies_are_not_one_log(weirpool: Weirpool, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    fill(one, 1, 2)
    shutil.copytree(one, two)
    for path in (one, two):
        fill(path, 3, 4)
    seal_all(one)
    for name in ("00000000000000000006.arrows", "_durable"):
        shutil.copy(two / f"source={SOURCE}" / name, one / f"source={SOURCE}" / name)
    result = weirpool("journal", "verify", str(one))
    assert result.code == 1
    assert "the rows from position 6 on follow other rows than the sealed ones" in result.err


def test_copies_are_compared_where_both_have_a_digest(weirpool: Weirpool, journal: Path, tmp_path: Path) -> None:
    two = tmp_path / "two"
    shutil.copytree(journal, two)
    seal_all(two)
    for one, other in ((journal, two), (two, journal)):
        result = weirpool("journal", "verify", str(one), "--against", str(other))
        assert (result.code, result.err) == (0, "")
        assert b"has the same rows up to position 15" in result.out
    fill(journal, 1)
    fill(two, 1)
    result = weirpool("journal", "verify", str(journal), "--against", str(two))
    assert result.code == 1 and "differs from this copy between positions 15 and 15" in result.err


def test_cp_copies_sealed_segments(weirpool: Weirpool, journal: Path, tmp_path: Path) -> None:
    two = tmp_path / "two"
    result = weirpool("journal", "cp", str(journal), str(two))
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith(b"bytes; the copy holds 0 to 15\n")
    assert weirpool("journal", "verify", str(two), "--against", str(journal)).out.startswith(b"s: 15 rows from 0 to 15")


def test_cp_copies_from_a_store(weirpool: Weirpool, journal: Path, tmp_path: Path, uri: str) -> None:
    source = tmp_path / "source"
    fill(source, 1, 2, 3)
    seal_all(source, SealOptions(target_bytes=1, store=uri))
    for place, rows in ((uri, 3), (str(source), 6)):
        result = weirpool("journal", "cp", place, str(tmp_path / "two"))
        assert (result.code, result.err) == (0, "")
        found = weirpool("journal", "verify", str(tmp_path / "two"), "--against", place)
        assert found.code == 0 and found.out.startswith(b"s: %d rows from 0 to %d" % (rows, rows))
