"""A link that is closing is waited for as long as its output moves, and no longer."""

from __future__ import annotations

import asyncio

import pytest

from tests.sim.clockwork import run
from weirpool.transports.lingering import BACKLOG_BYTES, MAX_LINGER, STALL_TIMEOUT, Linger

RATE = 10_000


class Closing:
    """A link that sends `size` bytes, `RATE` a second, and then hears no more of its peer.

    Attributes:
        aborted: After how many seconds it was aborted.

    """

    def __init__(self, size: int, stalls_at: float = 1e9) -> None:
        self.size = size
        self.stalls_at = stalls_at
        self.aborted = asyncio.get_running_loop().create_future()
        self.began = asyncio.get_running_loop().time()

    def elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self.began

    def progress(self) -> tuple[int, int]:
        sent = min(self.size, int(RATE * min(self.elapsed(), self.stalls_at)))
        return self.size - sent, sent

    def abort(self) -> None:
        self.aborted.set_result(self.elapsed())


@pytest.mark.parametrize(
    ("size", "stalls_at", "least", "most"),
    [
        # A Close alone, sent and not answered.
        (BACKLOG_BYTES, 1e9, 1, 1),
        # All of it leaves, and the peer gets its second.
        (5 * RATE, 1e9, 5, 7),
        # Half of it leaves.
        (8 * RATE, 4, 4 + STALL_TIMEOUT, 5 + STALL_TIMEOUT),
        # Nothing does.
        (8 * RATE, 0, STALL_TIMEOUT, STALL_TIMEOUT),
        # It would take for ever.
        (10**9, 1e9, MAX_LINGER, MAX_LINGER),
    ],
)
def test_a_close_takes_as_long_as_output_moves(size: int, stalls_at: float, least: float, most: float) -> None:
    async def main() -> None:
        closing = Closing(size, stalls_at)
        Linger(1.0, closing.progress, closing.abort)
        assert least <= await closing.aborted <= most + 0.01

    run(main())


def test_cancel_stops_the_linger_timer() -> None:
    async def main() -> None:
        closing = Closing(0)
        linger = Linger(1.0, closing.progress, closing.abort)
        assert linger._timer.when() == closing.began + 1.0
        linger.cancel()
        await asyncio.sleep(MAX_LINGER)
        assert linger._timer.cancelled()
        assert not closing.aborted.done()

    run(main())
