from __future__ import annotations

import pytest

from weirpool.spark.polling import BUSY_SECONDS, IDLE_PAUSE, IDLE_SHARE, LONGEST_PAUSE, LONGEST_WAIT, Poll


class Journal:
    """A clock, and rows that arrive at some times."""

    def __init__(self, *arrivals: float, cost: float = 0.0) -> None:
        self.now = 0.0
        self.looks: list[float] = []
        self._arrivals = [*arrivals]
        self._cost = cost

    def look(self) -> bool:
        self.now += self._cost
        self.looks.append(self.now)
        return any(at <= self.now for at in self._arrivals)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds

    def poll(self) -> Poll:
        return Poll(self.look, clock=lambda: self.now, sleep=self.sleep)


def waits(journal: Journal, poll: Poll, answers: int) -> list[float]:
    """Return the time of each answer, without any rows."""
    found = []
    for _ in range(answers):
        begun = journal.now
        assert [*poll.changes()] == []
        found.append(journal.now - begun)
    return found


def test_answers_are_given_later_and_later() -> None:
    journal = Journal()
    times = waits(journal, journal.poll(), 10)
    assert times[:7] == pytest.approx([0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32])
    assert times[7:] == pytest.approx([LONGEST_WAIT] * 3)


def test_a_micro_batch_makes_the_next_answer_prompt() -> None:
    journal = Journal()
    poll = journal.poll()
    waits(journal, poll, 9)
    poll.progress()
    assert waits(journal, poll, 2) == pytest.approx([0, 0.01])


def test_rows_are_seen_soon_after_they_arrive() -> None:
    journal = Journal(0.5)
    poll = journal.poll()
    while not any(True for _ in poll.changes()):
        pass
    assert 0.5 <= journal.now <= 0.5 + IDLE_PAUSE


def test_a_change_without_new_rows_does_not_prolong_the_answer() -> None:
    journal = Journal(0.0)
    poll = journal.poll()
    for _ in range(9):
        for _ in poll.changes():
            pass
    begun = journal.now
    assert len([*poll.changes()]) > 10
    assert journal.now - begun == pytest.approx(LONGEST_WAIT)


def test_many_logs_are_looked_at_less_often_when_nothing_happens() -> None:
    journal = Journal(cost=0.005)
    poll = journal.poll()
    while journal.now < BUSY_SECONDS:
        waits(journal, poll, 1)
    looked, begun = len(journal.looks), journal.now
    waits(journal, poll, 20)
    share = (len(journal.looks) - looked) * 0.005 / (journal.now - begun)
    assert share < 1.5 * IDLE_SHARE


def test_a_pause_is_never_long() -> None:
    journal = Journal(cost=1.0)
    poll = journal.poll()
    for each in waits(journal, poll, 9):
        assert each <= LONGEST_PAUSE + 1.0 + LONGEST_WAIT
