from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from weirpool import (
    ApplicationError,
    Bearer,
    Canceled,
    ConnectError,
    LocalError,
    Metadata,
    Setup,
    SetupRejected,
    Simple,
    Undelivered,
)
from weirpool.spark.delivery import publish
from weirpool.spark.feed import RUN_ROWS
from weirpool.spark.items import Origin, Packer
from weirpool.spark.sink_options import SinkOptions

from .peers import Receiver, receiving
from .proxies import resetting

ORIGIN = Origin("q", 4, 1)


def admit(setup: Setup) -> None:
    if Metadata.decode(setup.payload.metadata).auth != Bearer("t0ken"):
        raise SetupRejected("who are you?")


def batch(first: int, end: int) -> pa.RecordBatch:
    return pa.record_batch({"data": [b"%d" % number for number in range(first, end)]})


def send(url: str, route: str, *batches: pa.RecordBatch, **more: str) -> int:
    options = SinkOptions.parse({"url": url, "route": route, **more})
    return publish(options, Packer("data", options.metadata_column), ORIGIN, iter(batches)).rows


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
        send(receiver.url, "typo", batch(0, 10), retries="0")


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
        send(gone.url, "rows", batch(0, 1), retries="1")


def test_an_upload_is_done_when_it_is_answered(receiver: Receiver) -> None:
    assert send(receiver.url, "uploaded", batch(0, 500), kind="upload") == 500
    assert [item.data for item in receiver.items] == [b"%d" % number for number in range(500)]


def test_a_task_of_many_bytes_is_several_requests(receiver: Receiver) -> None:
    count = 2 * RUN_ROWS + 5
    assert send(receiver.url, "rows", batch(0, count), maxBytesPerRequest="1") == count
    assert len(receiver.requests) == 3
    assert [json.loads(item.metadata or b"")["index"] for item in receiver.items] == list(range(count))


def test_each_call_is_answered(receiver: Receiver) -> None:
    receiver.busy = 2
    assert send(receiver.url, "asked", batch(0, 300), kind="call", concurrency="7") == 300
    assert sorted(int(item.data) for item in receiver.items) == list(range(300))


def test_a_rejected_call_fails_the_task_and_names_the_row(receiver: Receiver) -> None:
    rows = pa.record_batch({"data": [b"0", b"geheim"]})
    with pytest.raises(Undelivered, match=r"route 'asked' has rejected row 1: \[0x301\] not a number") as caught:
        send(receiver.url, "asked", rows, kind="call")
    assert "geheim" not in str(caught.value)


def test_rejected_rows_are_returned(receiver: Receiver) -> None:
    rows = pa.record_batch({"data": [b"0", b"bad", b"2"]})
    options = SinkOptions.parse({"url": receiver.url, "route": "asked", "kind": "call", "deadLetters": "/d"})
    delivered = publish(options, Packer("data", None), ORIGIN, iter([rows]))
    (rejection,) = delivered.rejections
    assert delivered.rows == 3 and len(receiver.items) == 2
    assert (rejection.index, rejection.code, rejection.message) == (1, "0x301", "not a number")
    assert rejection.data == b"bad" and json.loads(rejection.metadata or b"")["index"] == 1


def test_a_channel_yields_the_rows_that_it_rejects(receiver: Receiver) -> None:
    options = SinkOptions.parse({"url": receiver.url, "route": "picky", "deadLetters": "/d"})
    delivered = publish(options, Packer("data", None), ORIGIN, iter([batch(0, 6)]))
    assert [(each.index, each.data) for each in delivered.rejections] == [(0, b"0"), (3, b"3")]
    assert len(receiver.items) == 4


def test_without_dead_letters_a_row_that_a_channel_rejects_fails_the_task(receiver: Receiver) -> None:
    # It is not delivered, and nothing else would say so.
    with pytest.raises(Undelivered, match=r"route 'picky' has rejected row 0: .*\"deadLetters\" keeps such rows"):
        send(receiver.url, "picky", batch(0, 6))


def test_too_many_rejections_fail_the_task(receiver: Receiver) -> None:
    with pytest.raises(Undelivered, match="has rejected 2 rows of partition 1, more than"):
        send(receiver.url, "picky", batch(0, 6), deadLetters="/d", maxDeadLetters="1")


def test_a_stalled_receiver_fails_the_task(receiver: Receiver) -> None:
    # PL8
    with pytest.raises(Undelivered, match=r"made no progress for 0\.2 s"):
        send(receiver.url, "stalled", batch(0, 100_000), idleTimeout="0.2")
    with pytest.raises(Undelivered, match=r"not been completed within 0\.1 s"):
        send(receiver.url, "stalled", batch(0, 10), timeout="0.1")


def test_a_slow_spark_is_not_a_stalled_receiver(receiver: Receiver) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        for first in range(3):
            threading.Event().wait(0.15)
            yield batch(first, first + 1)

    options = SinkOptions.parse({"url": receiver.url, "route": "rows", "idleTimeout": "0.1"})
    assert publish(options, Packer("data", None), ORIGIN, rows()).rows == 3


@pytest.mark.parametrize(("route", "kind"), [("rows", "channel"), ("uploaded", "upload"), ("asked", "call")])
def test_a_reset_link_does_not_fail_the_task(receiver: Receiver, route: str, kind: str) -> None:
    # PL8: the same rows are sent again, with the same metadata.
    with resetting(receiver.url, after=60_000) as proxy:
        assert send(proxy.url, route, batch(0, RUN_ROWS), batch(RUN_ROWS, 2 * RUN_ROWS), kind=kind) == 2 * RUN_ROWS
    assert proxy.links == 2
    assert {int(item.data) for item in receiver.items} == set(range(2 * RUN_ROWS))
    indices = [
        json.loads(Metadata.decode(item.metadata).entries[-1].content if kind == "call" else item.metadata)["index"]
        for item in receiver.items
    ]
    assert [int(item.data) for item in receiver.items] == indices


def test_credentials_are_in_the_set_up_or_in_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINK_TOKEN", "t0ken")
    with receiving(acceptor=admit) as receiver:
        assert send(receiver.url, "rows", batch(0, 5), token="env:SINK_TOKEN") == 5
        with pytest.raises(SetupRejected, match="who are you"):
            send(receiver.url, "rows", batch(0, 5), token="env:HOME", retries="0")
        with pytest.raises(LocalError, match="'NO_SUCH' is not set"):
            send(receiver.url, "rows", batch(0, 5), token="env:NO_SUCH")
    with receiving() as receiver:
        send(receiver.url, "rows", batch(0, 2), token="t0ken", authenticate="request")
        send(receiver.url, "asked", batch(0, 2), kind="call", user="ada", password="x", authenticate="request")
    assert Metadata.decode(receiver.requests[0].metadata).auth == Bearer("t0ken")
    assert Metadata.decode(receiver.items[-1].metadata).auth == Simple("ada", "x")


def test_rows_are_not_sent_faster_than_allowed(receiver: Receiver) -> None:
    assert send(receiver.url, "rows", batch(0, 30), maxRowsPerSecond="100") == 30
    assert len(receiver.items) == 30
