from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock import ApplicationError, Canceled, ConnectError, LocalError
from penstock.spark.items import Origin, Packer
from penstock.spark.options import SinkOptions
from penstock.spark.publish import RUN_ROWS, publish

from .peers import Receiver, receiving

ORIGIN = Origin("q", 4, 1)


def batch(first: int, end: int) -> pa.RecordBatch:
    return pa.record_batch({"data": [b"%d" % number for number in range(first, end)]})


def send(url: str, route: str, *batches: pa.RecordBatch, **more: str) -> int:
    options = SinkOptions.parse({"url": url, "route": route, **more})
    return publish(options, Packer("data", options.metadata_column), ORIGIN, iter(batches))


def test_rows_arrive_in_order_behind_an_empty_request_that_says_whose_they_are(receiver: Receiver) -> None:
    assert send(receiver.url, "rows", batch(0, 3), batch(3, 5)) == 5
    assert [item.data for item in receiver.items] == [b"0", b"1", b"2", b"3", b"4"]
    (request,) = receiver.requests
    assert request.data == b""
    assert (request.metadata or b"").endswith(b'{"query":"q","batch":4,"partition":1}')
    metadata = [json.loads(item.metadata or b"") for item in receiver.items]
    assert metadata == [{"query": "q", "batch": 4, "partition": 1, "index": index} for index in range(5)]


def test_many_rows_go_at_the_pace_of_the_peer(receiver: Receiver) -> None:
    count = 3 * RUN_ROWS + 1
    assert send(receiver.url, "rows", batch(0, count)) == count
    assert [item.data for item in receiver.items] == [b"%d" % number for number in range(count)]


def test_a_peer_that_says_nothing_is_waited_for(receiver: Receiver) -> None:
    assert send(receiver.url, "silent", batch(0, 1000)) == 1000
    assert len(receiver.items) == 1000


def test_no_rows_are_fine(receiver: Receiver) -> None:
    assert send(receiver.url, "rows") == 0
    assert send(receiver.url, "fired", kind="fire") == 0


def test_fired_rows_are_with_the_network_when_it_returns(receiver: Receiver) -> None:
    assert send(receiver.url, "fired", batch(0, 500), kind="fire") == 500
    assert send(receiver.url, "rows", batch(0, 1)) == 1
    assert sorted(int(payload.data) for payload in receiver.fired) == list(range(500))


def test_what_the_peer_fails_with_is_raised(receiver: Receiver) -> None:
    with pytest.raises(ApplicationError, match="no room"):
        send(receiver.url, "refuse", batch(0, 10))
    with pytest.raises(ApplicationError, match="no channel handler is named 'typo'"):
        send(receiver.url, "typo", batch(0, 10))


def test_a_peer_that_stops_half_way_has_not_taken_the_rows(receiver: Receiver) -> None:
    with pytest.raises(Canceled, match="must take all items"):
        send(receiver.url, "break", *(batch(0, RUN_ROWS) for _ in range(10)))


def test_rows_that_cannot_be_sent_are_explained_by_their_own_error(receiver: Receiver) -> None:
    with pytest.raises(LocalError, match="null in column 'data'"):
        send(receiver.url, "rows", batch(0, 3), pa.record_batch({"data": pa.array([None], pa.binary())}))


def test_what_spark_fails_with_is_raised(receiver: Receiver) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield batch(0, 3)
        raise OSError("the JVM is gone")

    options = SinkOptions.parse({"url": receiver.url, "route": "rows"})
    with pytest.raises(OSError, match="the JVM is gone"):
        publish(options, Packer("data", None), ORIGIN, rows())


def test_a_peer_that_is_not_there_is_named() -> None:
    with receiving() as gone:
        pass
    with pytest.raises(ConnectError, match=gone.url.partition("//")[2]):
        send(gone.url, "rows", batch(0, 1))
