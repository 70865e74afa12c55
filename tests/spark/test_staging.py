from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from weirpool import ApplicationError, Invalid, LocalError
from weirpool.journal.layout import log_folder
from weirpool.receiving.messages import Committed, Stage
from weirpool.spark.delivery import publish
from weirpool.spark.items import Origin, Packer
from weirpool.spark.sink_options import SinkOptions
from weirpool.spark.staging import abort, commit

from .collectors import held, listening
from .peers import Receiver
from .proxies import resetting


def options(url: str, route: str = "rows") -> SinkOptions:
    return SinkOptions.parse({"url": url, "route": route, "delivery": "transactional"})


def staged(url: str, batch: int, partition: int, count: int = 3) -> tuple[Stage, ...]:
    rows = pa.record_batch({"data": pa.array([b"%d %d" % (partition, number) for number in range(count)], pa.binary())})
    packer = Packer("data", None, keyed=False)
    return publish(options(url), packer, Origin("q", batch, partition), iter([rows])).stages


def test_rows_are_staged_and_committed_once(tmp_path: Path) -> None:
    with listening(tmp_path, fsync=False) as url:
        stages = [*staged(url, 0, 0), *staged(url, 0, 1)]
        assert held(tmp_path) == []
        assert commit(options(url), "q", 0, stages) == Committed(0, 6)
        assert commit(options(url), "q", 0, stages) == Committed(0, 6, repeated=True)
    assert held(tmp_path) == [b"0 0", b"0 1", b"0 2", b"1 0", b"1 1", b"1 2"]


def test_a_reset_link_stages_the_rows_again(tmp_path: Path) -> None:
    with listening(tmp_path, fsync=False) as url, resetting(url, after=20_000) as proxy:
        stages = staged(proxy.url, 0, 0, count=5_000)
        assert proxy.links == 2
        assert commit(options(url), "q", 0, stages) == Committed(0, 5_000)
    assert len(held(tmp_path)) == 5_000
    assert list((log_folder(tmp_path, "rows") / "_stages").iterdir()) == []


def test_a_restarted_collector_has_the_stages(tmp_path: Path) -> None:
    with listening(tmp_path) as url:
        stages = staged(url, 0, 0)
    with listening(tmp_path) as url:
        assert commit(options(url), "q", 0, stages) == Committed(0, 3)
    with listening(tmp_path) as url:
        assert commit(options(url), "q", 0, staged(url, 0, 0)) == Committed(0, 3, repeated=True)


def test_dropped_stages_cannot_be_committed(tmp_path: Path) -> None:
    with listening(tmp_path, fsync=False) as url:
        stages = staged(url, 0, 0)
        abort(options(url), "q", 0, stages)
        with pytest.raises(ApplicationError, match="run the micro-batch again"):
            commit(options(url), "q", 0, stages)


def test_a_collector_that_does_not_know_the_route_says_so(tmp_path: Path) -> None:
    with listening(tmp_path, fsync=False) as url, pytest.raises(Invalid, match="the routes are rows"):
        commit(options(url, "other"), "q", 0, [])


def test_a_service_that_receives_no_stages_is_explained_at_once(receiver: Receiver) -> None:
    # The name of the handler that is missing is not one that the user knows.
    with pytest.raises(LocalError, match=r"does not receive stages.*`weirpool collect --listen`"):
        staged(receiver.url, 0, 0)
