"""When a micro-batch is made, and of how many rows."""

from __future__ import annotations

from pathlib import Path

from weirpool.spark.polling import Poll
from weirpool.spark.view import JournalView

from .journals import EARLIEST, NO_LIMITS, driver, fill, numbers


def test_few_rows_wait_for_others(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    one = driver(tmp_path, minRowsPerTrigger="10", maxTriggerDelay="1h")
    settled = one.advance(EARLIEST, (None, 1 << 30))
    assert settled is not None and numbers(settled) == ({"a": 0}, {"a": 0})
    assert one.advance(settled, (None, 1 << 30)) is None
    fill(tmp_path, "a", 10)
    assert numbers(one.advance(settled, (None, 1 << 30))) == ({"a": 0}, {"a": 10})


def test_the_rows_of_a_run_with_an_end_do_not_wait(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    one = driver(tmp_path, minRowsPerTrigger="10", maxTriggerDelay="1h")
    assert numbers(one.advance(EARLIEST, NO_LIMITS)) == ({"a": 0}, {"a": 5})
    one.stop_here()
    assert numbers(one.advance(EARLIEST, (None, 1 << 30))) == ({"a": 0}, {"a": 5})


def test_rows_that_arrive_while_spark_waits_for_an_answer_are_in_it(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    one = driver(tmp_path)
    end = one.latest(EARLIEST, (None, 1 << 30))
    assert end is not None
    looked = []

    def look() -> bool:
        looked.append(True)
        if len(looked) == 3:
            fill(tmp_path, "a", 7)
        return JournalView.may_have_changed(one.view)

    one._poll = Poll(look, sleep=lambda seconds: None)
    while (later := one.latest(end, (None, 1 << 30))) is None:
        pass
    assert numbers(later) == ({"a": 0}, {"a": 7}) and len(looked) == 3
