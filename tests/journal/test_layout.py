from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import LocalError
from weirpool.journal import JournalReader, JournalWriter
from weirpool.journal.layout import (
    Extent,
    bytes_between,
    check_name,
    is_served,
    is_source,
    log_folder,
    segment_name,
    segment_position,
    source_folder,
    source_of,
)

POSITIONS = st.integers(0, 2**63 - 1)


@given(POSITIONS)
def test_segments_are_named_by_their_first_position(position: int) -> None:
    assert segment_position(segment_name(position)) == position


def test_segment_names_sort_as_positions_do() -> None:
    assert segment_name(0) == "00000000000000000000.arrows"
    assert segment_name(9) < segment_name(10) < segment_name(2**63 - 1)
    for name in ("0.arrows", segment_name(0) + ".tmp", "_durable", "x" * 20 + ".arrows"):
        assert segment_position(name) is None


@pytest.mark.parametrize("name", ["flights", "quotes.live", "A-1_b", "x" * 128])
def test_names_that_any_disk_takes(name: str) -> None:
    assert source_of(source_folder(name)) == name


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "_lock", ".x", "x" * 129, "ü", "a b", "a\n"])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    # THREATS 72: a name from outside is never a path.
    with pytest.raises(LocalError, match="cannot name a source"):
        check_name(name, "source")
    assert source_of(f"source={name}") is None and not is_source(name)


def test_other_folders_are_no_sources() -> None:
    assert source_of("flights") is None
    assert source_of("sink=flights") is None


def test_where_a_log_lies() -> None:
    assert log_folder("data", "s") == Path("data/source=s")
    assert log_folder(Path("/data"), "s") == log_folder("file:///data", "s") == Path("/data/source=s")
    with pytest.raises(LocalError, match="can only be read"):
        log_folder("s3://bucket/data", "s")


def test_bytes_are_shared_among_rows() -> None:
    extents = [Extent(0, 10, 1000), Extent(10, 10, 50), Extent(10, 30, 400)]
    assert bytes_between(extents, 0, 30) == 1400
    assert bytes_between(extents, 5, 20) == 500 + 200
    assert bytes_between(extents, 30, 40) == bytes_between(extents, 20, 10) == bytes_between([], 0, 9) == 0


def test_a_uri_names_the_same_folder_for_writing_and_reading(tmp_path: Path) -> None:
    uri = (tmp_path / "50 % off").as_uri()
    with JournalWriter.open(uri, "s", fsync=False) as writer:
        assert JournalReader(uri, "s").uuid == writer.uuid
    assert (tmp_path / "50 % off").is_dir()


def test_collectors_are_told_from_folders_and_stores() -> None:
    assert is_served("rsocket+tcp://collector:7879") and is_served("river+wss://collector:7879,river+wss://b:1")
    assert not any(map(is_served, ("data/a+b", "/data/x", "s3://bucket/a+b", "file:///a+b", Path("a+tcp:"))))
