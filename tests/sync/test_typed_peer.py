from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import weirpool.sync
from tests.sync.served import Point, Watch, Wrong, service_of
from weirpool import ApplicationError, LocalError, Mismatch, Payload
from weirpool.sync import Peer, typed


def test_values_are_sent_and_received(peer: Peer) -> None:
    asked = typed(peer)
    assert asked.call("echo", {"x": 1}) == {"x": 1}
    assert asked.call("echo", Point(1), returns=Point) == Point(1)
    with asked.stream("points", 2, returns=Point) as points:
        assert list(points) == [Point(0, 0.0), Point(1, 0.5)]
    assert asked.upload("points.sum", 0, (Point(x) for x in range(10)), returns=int) == 45
    with asked.channel("back", Point(0), iter([Point(1), Point(2)]), returns=Point) as points:
        assert list(points) == [Point(1), Point(2)]
    asked.fire("note", 1)
    assert "TypedPeer" in repr(asked)


def test_errors_have_their_classes(peer: Peer) -> None:
    asked = typed(peer)
    with pytest.raises(Wrong, match="it is wrong"):
        list(asked.stream("points.wrong", 1, returns=Point, errors=[Wrong]))
    with pytest.raises(Wrong, match="it is wrong"):
        list(asked.stream("points.wrong", 1, returns=Point, errors=[Wrong]).batches())
    with pytest.raises(Mismatch):
        asked.call("echo", "text", returns=Point)
    with pytest.raises(LocalError, match="cannot be encoded as"):
        typed(peer, "text/plain")


def test_errors_between_values_are_yielded(watch: Watch) -> None:
    url = "river+memory://sync-errors-between"
    with weirpool.sync.serve(service_of(watch), url), weirpool.sync.connect(url) as peer:
        asked = typed(peer)
        with asked.stream("points.gaps", 1, returns=Point, errors=[Wrong], results=True) as points:
            assert next(iter(points)) == Point(1)
            gap, last = points
        assert last == Point(2) and isinstance(gap, Wrong)
        first, error, _ = peer.stream("points.gaps", b"1").with_errors()
        assert isinstance(first, Payload) and isinstance(error, ApplicationError) and error.code == "WRONG"
        with pytest.raises(LocalError, match="errors between values have no columns"):
            asked.stream("points.gaps", 1, returns=Point, results=True).to_arrow()
        with asked.channel("points.both", 1, [], results=True) as answers:
            assert len(list(answers)) == 3


def test_timeouts_apply(peer: Peer) -> None:
    asked = typed(peer)
    with pytest.raises(TimeoutError, match="call 'never'"):
        asked.call("never", timeout=0.01)
    with pytest.raises(TimeoutError, match="stream 'silence'"):
        list(asked.stream("silence", returns=Point, timeout=0.01).raw)


def test_canceled_stream_ends(peer: Peer) -> None:
    with typed(peer).stream("points", 1_000_000, returns=Point, credit=4) as points:
        next(iter(points))
        points.cancel()
        assert points.raw.over


def test_values_become_tables(peer: Peer) -> None:
    asked = typed(peer)
    expected = {"x": [0, 1, 2], "y": [0.0, 0.5, 1.0]}
    assert asked.stream("points", 3, returns=Point).to_arrow().to_pydict() == expected
    assert asked.stream("points", 3, returns=Point).to_polars().to_dict(as_series=False) == expected
    assert asked.stream("points", 3, returns=Point).to_pandas().to_dict("list") == expected
    schema = pa.schema([("y", pa.float32())])
    assert asked.stream("points", 3, returns=Point).to_arrow(2, schema=schema).to_pydict() == {"y": [0.0, 0.5]}
    batches = list(asked.stream("points", 10, returns=Point).batches(4))
    assert pa.Table.from_batches(batches).num_rows == 10 and max(batch.num_rows for batch in batches) <= 4


USER = """
from collections.abc import Iterator
import weirpool.sync
from weirpool import Payload, TypedError, typed
from typing import assert_type
class Wrong(TypedError, code="WRONG"):
    pass
class Point:
    x: int
with weirpool.sync.connect("rsocket+tcp://127.0.0.1:1", timeout=1.5) as peer:
    assert_type(peer.call("echo", b"", timeout=1), Payload)
    with peer.stream("count", credit=2) as items:
        assert_type(next(iter(items)), Payload)
        for batch in items.batches():
            pass
    asked = weirpool.sync.typed(peer)
    assert_type(asked.call("echo", 1, returns=Point, errors=[Wrong], timeout=2), Point)
    assert_type(asked.upload("sum", 1, [1], returns=int), int)
    with asked.stream("points", returns=Point, timeout=1, credit=1) as points:
        assert_type(next(iter(points)), Point)
    with asked.channel("points", 1, [2], returns=Point) as points:
        pass
assert_type(weirpool.sync.balance(["x"]).nodes[0].url, str)
"""


@pytest.mark.slow
def test_types_of_user_code_are_checked(tmp_path: Path) -> None:
    program = tmp_path / "user.py"
    program.write_text(USER)
    root = Path(__file__).parents[2]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(tmp_path),
        "--config-file",
        str(root / "pyproject.toml"),
        str(program),
    ]
    result = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=300)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
