from __future__ import annotations

import duckdb
import polars
import pyarrow as pa
import pytest

import weirpool
import weirpool.sync
from tests.sync.served import Point, Watch
from weirpool import LimitExceeded, Payload
from weirpool.sync import Peer, typed


def test_reader_is_read_by_others_and_lazily(peer: Peer, watch: Watch) -> None:
    with peer.stream("count", b"100000", credit=100) as items:
        reader = items.reader()
        first = reader.read_next_batch()
        peer.call("echo")
        assert watch.yielded <= first.num_rows + 102
        assert first.num_rows + reader.read_all().num_rows == 100_000


def test_duckdb_and_polars_read_values(peer: Peer) -> None:
    points = typed(peer).stream("points", 1_000, returns=Point).reader()
    assert duckdb.from_arrow(points).aggregate("count(*), sum(x)").fetchall() == [(1_000, 499_500)]
    assert polars.DataFrame(typed(peer).stream("points", 10, returns=Point)).shape == (10, 2)
    assert pa.table(peer.stream("count", b"3"))["data"].to_pylist() == [b"0", b"1", b"2"]


def test_reader_of_arrow_items_has_their_columns() -> None:
    service = weirpool.Service()
    frame = polars.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})

    @service.stream("frame")
    def rows(request: Payload) -> object:
        return weirpool.rows(frame if request.data else frame.clear(), "arrow", rows_per_item=2)

    with weirpool.sync.serve(service, "rsocket+memory://frames") as server:
        with weirpool.sync.connect(server.urls[0]) as peer:
            table = peer.stream("frame", b"x").reader(encoding="arrow").read_all()
            assert polars.from_arrow(table).equals(frame)  # type: ignore[union-attr, arg-type]
            assert peer.stream("frame").reader(encoding="arrow").read_all().num_rows == 0


def test_error_of_the_stream_is_raised_by_the_reader(peer: Peer) -> None:
    reader = typed(peer).stream("points.wrong", 1, returns=Point).reader()
    with pytest.raises(Exception, match="it is wrong"):
        reader.read_all()


def test_table_that_is_too_large_is_refused_and_the_stream_canceled(peer: Peer, watch: Watch) -> None:
    stream = peer.stream("count", b"1000000")
    with pytest.raises(LimitExceeded, match=r"more than 10,000 bytes after .* rows; pass limit="):
        stream.to_arrow(max_bytes=10_000)
    assert stream.over and watch.yielded < 1_000_000
