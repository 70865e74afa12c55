from __future__ import annotations

import pyarrow as pa
import pytest

from weirpool import Undelivered
from weirpool.spark.feed import Chunk, Feed
from weirpool.spark.items import Origin, Packer
from weirpool.spark.rejection import Letters
from weirpool.spark.sending import SENDERS, _accept, _reject, _unanswered
from weirpool.spark.sink_options import SinkOptions


async def chunk() -> Chunk:
    rows = pa.record_batch({"data": pa.array([b"a", b"b", b"c"], pa.binary())})
    made = Chunk(Feed(Packer("data", None, keyed=False), Origin("q", 0, 1), iter([rows])), 1 << 20)
    assert [part async for part in made.parts()]
    return made


def test_all_kinds_can_be_sent() -> None:
    assert sorted(SENDERS) == ["call", "channel", "fire", "upload"]


async def test_answered_rows_are_not_sent_again() -> None:
    made = await chunk()
    made.answered.add(1)
    async for part in made.parts():
        assert list(_unanswered(made, part)) == [(0, b"a", None), (2, b"c", None)]


async def test_a_row_is_rejected_once() -> None:
    made, letters = await chunk(), Letters(10)
    for _ in range(2):
        _reject(made, letters, b'{"index": 2, "code": "OLD", "message": "too late"}')
    (rejection,) = letters.rejections
    assert (rejection.partition, rejection.index, rejection.code, rejection.data) == (1, 2, "OLD", b"c")


@pytest.mark.parametrize(("answer", "why"), [(b"done", "4 bytes of something else"), (b'{"index": 3}', "not a row of")])
async def test_answers_that_are_no_rejections_are_explained(answer: bytes, why: str) -> None:
    with pytest.raises(Undelivered, match=why):
        _reject(await chunk(), Letters(10), answer)


@pytest.mark.parametrize(
    "answer",
    [b"", b"ok", b"2", b'{"index": 2}', b'{"index": 7, "code": "OLD"}', b'{"index": 2, "code": "OLD", "price": 1}'],
)
async def test_without_dead_letters_other_answers_mean_nothing(answer: bytes) -> None:
    options = SinkOptions.parse({"url": "rsocket+tcp://localhost:1", "route": "r"})
    _accept(await chunk(), options, answer)
    with pytest.raises(Undelivered, match=r"row 2: \[OLD\] "):
        _accept(await chunk(), options, b'{"index": 2, "code": "OLD"}')
