"""The history of a journal whose sealed files are not what was sealed: it is refused, or right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from weirpool.archive import SealOptions, seal
from weirpool.archive.file import check_files
from weirpool.archive.manifest import Segment
from weirpool.archive.retire import retire
from weirpool.errors import JournalCorrupt
from weirpool.journal.format import ITEMS
from weirpool.journal.writer import JournalWriter
from weirpool.objects import open_store
from weirpool.spark.sealed_history import history

from ..archive.changes import OTHER_FILES, changed_dictionaries, changed_headers, changed_rows
from ..objects.stores import BUCKET, CREDENTIALS, new_uri, numbers, s3_server

pytestmark = pytest.mark.spark

ROWS = 3000
VERIFY = "parquet.page.verify-checksum.enabled"
VIEW = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"

Row = tuple[int, bytes, bytes | None, str]


def write(journal: Path) -> None:
    """Append three segments, of which the last is not sealed: few bytes are those of structure."""
    with JournalWriter.open(journal, "a", segment_bytes=1, fsync=False) as writer:
        for first in range(0, ROWS, ROWS // 3):
            numbers_of = range(first, first + ROWS // 3)
            data = pa.array([b'{"n":%d,"at":"%x"}' % (n, n * 7919 * 104729) for n in numbers_of], pa.binary())
            metadata = pa.array([b"m%d" % n if n % 3 else None for n in numbers_of], pa.binary())
            writer.append(pa.RecordBatch.from_arrays([data, metadata], schema=ITEMS), f"stream {first}")


class Sealed:
    """A journal with two sealed files, of which the first can be changed, also where Spark reads it."""

    def __init__(self, spark: SparkSession, journal: Path, store: str, mirror: Path | None = None) -> None:
        self._spark = spark
        # Spark's workers have no credentials for the rows that are not sealed.
        self.place, self.total = (store, ROWS * 2 // 3) if mirror else (str(journal), ROWS)
        write(journal)
        while seal(journal, "a", SealOptions(target_bytes=1, store=store or None), force=True):
            pass
        self._store = open_store(store or journal)
        self._mirror = mirror
        self.name, neighbour = [name for name, _ in self._store.list("source=a") if name.endswith(".parquet")]
        for name in (self.name, neighbour):
            self._copy(name, self.content(name))
        self.file, self.neighbour = self.content(self.name), self.content(neighbour)

    def content(self, name: str) -> bytes:
        content = self._store.get(name)
        assert content is not None
        return content

    def change(self, content: bytes | None) -> None:
        if content is None:
            self._store.delete([self.name])
        else:
            self._store.put(self.name, content)
        self._copy(self.name, content)

    def _copy(self, name: str, content: bytes | None) -> None:
        if self._mirror is not None and content is not None:
            path = self._mirror / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def rows(self) -> list[Row]:
        found = history(self._spark, self.place).collect()
        return sorted(
            (row.position, bytes(row.data), row.metadata and bytes(row.metadata), row.stream) for row in found
        )


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as started:
        yield started


@pytest.fixture(params=["folder", "s3"])
def sealed(
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Sealed]:
    """A sealed journal; with "s3", Spark sees the objects under their URIs through a view of a folder."""
    if request.param == "folder":
        yield Sealed(spark, tmp_path / "journal", "")
        return
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    uri = new_uri(request.getfixturevalue("endpoint"))
    folder = uri.partition("?")[0].rpartition("/")[2]
    mirror = tmp_path / "mirror"
    settings = {
        "fs.s3a.impl": VIEW,
        "fs.s3a.impl.disable.cache": "true",
        "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        f"fs.viewfs.mounttable.{BUCKET}.link./{folder}": mirror.as_uri(),
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield Sealed(spark, tmp_path / "journal", uri, mirror)
    finally:
        for name in settings:
            spark.conf.unset(name)


@pytest.fixture(params=["true", "false"], ids=["vectorized", "by rows"])
def vectorized(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    name = "spark.sql.parquet.enableVectorizedReader"
    spark.conf.set(name, request.param)
    yield
    spark.conf.unset(name)


def test_a_file_that_is_not_the_sealed_one_is_refused_and_named(spark: SparkSession, sealed: Sealed) -> None:
    assert len(sealed.rows()) == sealed.total
    for what, change in OTHER_FILES.items():
        sealed.change(change(sealed.file, sealed.neighbour))
        with pytest.raises(JournalCorrupt, match=rf"{sealed.name}: .*; restore this file"):
            history(spark, sealed.place)
            pytest.fail(what)
    # Of the other file, nothing is wrong.
    assert history(spark, sealed.place, positions={"a": (ROWS // 3, ROWS)}).count() == sealed.total - ROWS // 3
    sealed.change(sealed.file)
    assert len(sealed.rows()) == sealed.total


def refused_or_right(sealed: Sealed, truth: list[Row]) -> str:
    """Return the error of the read of a history, or nothing if its rows are right."""
    try:
        assert sealed.rows() == truth
    except AssertionError:
        raise
    except Exception as error:
        return str(error)
    return ""


CHANGED: dict[str, Callable[[bytes], list[bytes]]] = {
    "rows": lambda file: [*islice(changed_rows(file), 2)],
    "dictionaries": lambda file: [*changed_dictionaries(file)],
}


@pytest.mark.parametrize("where", CHANGED)
def test_changed_bytes_of_a_page_are_refused_and_their_file_is_named(
    sealed: Sealed, vectorized: None, where: str
) -> None:
    truth = sealed.rows()
    changes = CHANGED[where](sealed.file)
    assert changes
    for changed in changes:
        sealed.change(changed)
        assert sealed.name in refused_or_right(sealed, truth)


def test_a_changed_header_of_a_page_returns_no_other_rows(sealed: Sealed, vectorized: None) -> None:
    truth = sealed.rows()
    refused = []
    for changed in islice(changed_headers(sealed.file), 6):
        sealed.change(changed)
        refused.append(refused_or_right(sealed, truth))
    assert any(sealed.name in error for error in refused)


def test_checksums_are_verified_for_this_read_only(spark: SparkSession, sealed: Sealed) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(VERIFY, "false")
    try:
        sealed.change(next(changed_rows(sealed.file)))
        with pytest.raises(Exception, match="FAILED_READ_FILE"):
            sealed.rows()
        assert hadoop.get(VERIFY) == "false"
    finally:
        hadoop.unset(VERIFY)


def test_without_the_option_spark_returns_what_was_changed(spark: SparkSession, tmp_path: Path) -> None:
    # If this fails, Spark verifies by itself.
    sealed = Sealed(spark, tmp_path / "journal", "")
    sealed.change(next(changed_rows(sealed.file)))
    assert spark.read.parquet(str(tmp_path / "journal" / sealed.name)).count() == ROWS // 3


def test_files_that_are_removed_meanwhile_are_not_damaged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = Sealed(spark, tmp_path / "journal", "")
    patched = "weirpool.spark.sealed_history.check_files"

    def retired(store: str, files: list[tuple[str, Segment]]) -> None:
        monkeypatch.setattr(patched, check_files)
        retire(sealed.place, "a", SealOptions(keep_bytes=len(sealed.neighbour)))
        check_files(store, files)

    monkeypatch.setattr(patched, retired)
    assert [position for position, *_ in sealed.rows()] == [*range(ROWS // 3, ROWS)]


def test_a_store_that_weirpool_reads_is_checked_too(spark: SparkSession, tmp_path: Path) -> None:
    sealed = Sealed(spark, tmp_path / "journal", f"memory://damage-{next(numbers)}")
    sealed.change(sealed.neighbour)
    with pytest.raises(JournalCorrupt, match=sealed.name):
        history(spark, sealed.place)
