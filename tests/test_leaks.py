"""What a test leaves to those after it is noticed."""

from __future__ import annotations

import signal

import pytest

from tests.leaks import Handlers


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_handler_of_a_signal_is_noticed_and_put_back(number: signal.Signals) -> None:
    handler = signal.getsignal(number)
    other = signal.SIG_DFL if handler is signal.SIG_IGN else signal.SIG_IGN
    before = Handlers()
    signal.signal(number, other)
    assert before.left() == [f"{number.name} is handled by {other!r}"]
    assert signal.getsignal(number) is handler
    assert before.left() == []
