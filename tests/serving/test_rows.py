"""Rows read through a collector: the same as from its files, or an error that names them."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.logs import SOURCE, flip, write
from weirpool.errors import DataLost, JournalCorrupt
from weirpool.journal import Journal
from weirpool.journal.damage import Damage
from weirpool.journal.losses import accept

from .served import Served, serving

COLUMNS = st.sampled_from((None, ("position",), ("time", "position"), ("data",), ("metadata", "stream")))
END = 9_974


def table(where: object, first: int, end: int, columns: tuple[str, ...] | None = None) -> pa.Table | None:
    """Return the rows of a range, or None if there are none."""
    batches = list(Journal(str(where)).reader(SOURCE).read(first, end, columns=columns))
    return pa.Table.from_batches(batches).combine_chunks() if batches else None


@settings(max_examples=30)
@given(st.integers(0, END), st.integers(0, END), COLUMNS)
def test_any_range_is_that_of_the_files(
    folder: Path, server: Served, one: int, other: int, columns: tuple[str, ...] | None
) -> None:
    first, end = sorted((one, other))
    assert table(server.url, first, end, columns) == table(folder, first, end, columns)


@pytest.mark.parametrize("protocol", ["reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams", "rsocket"])
@pytest.mark.parametrize("transport", ["tcp", "ws"])
def test_every_protocol_of_bytes_carries_them(folder: Path, protocol: str, transport: str) -> None:
    with serving(folder, f"{protocol}+{transport}://127.0.0.1:0") as served:
        assert table(served.url, 40, 9_500) == table(folder, 40, 9_500)


def test_reading_goes_on_after_a_lost_connection(tmp_path: Path) -> None:
    write(tmp_path, *[4_000] * 200)
    with serving(tmp_path) as served:
        reader = Journal(served.url).reader(SOURCE)
        found = []
        for batch in reader.read(0, reader.end):
            found += batch["position"].to_pylist()
            if len(found) in (4_000 * each for each in (1, 90)) or len(found) % 80_000 == 0:
                served.cut()
        assert found == list(range(800_000))


def test_a_changed_byte_is_noticed_here(tmp_path: Path) -> None:
    folder = write(tmp_path, 10, 10, 10)
    segment = next(folder.glob("*.arrows"))
    at = segment.read_bytes().index(b"141516")
    with serving(tmp_path) as served:
        reader = Journal(served.url).reader(SOURCE)
        flip(segment, at)
        with pytest.raises(JournalCorrupt, match=r"positions 10 to 19.*checksum of its body"):
            list(reader.read(0, 30))
        assert sum(batch.num_rows for batch in reader.read(20, 30)) == 10
        accept(folder, [(str(segment), Damage(10, 20, "flipped"))], 0.0)
        assert [row for batch in reader.read(0, 30) for row in batch["position"].to_pylist()] == [
            *range(10), *range(20, 30)
        ]  # fmt: skip


def test_what_is_gone_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, 10, 10, segment_bytes=1)
    with serving(tmp_path) as served:
        reader = Journal(served.url).reader(SOURCE)
        with pytest.raises(DataLost, match="positions 20 to 29 are not in the log, which holds 0 to 19"):
            list(reader.read(15, 30))
        os.unlink(min(folder.glob("*.arrows")))
        with pytest.raises((DataLost, JournalCorrupt), match="positions 0 to"):
            list(reader.read(0, 20))


def test_a_reader_that_stops_early_ends_its_stream(folder: Path, server: Served) -> None:
    rows = Journal(server.url).reader(SOURCE).read(0, END)
    assert next(rows).num_rows
    rows.close()
    assert table(server.url, 0, 5) == table(folder, 0, 5)
