from __future__ import annotations


def test_timers_expire_in_order_and_once(build) -> None:
    timers = build.module("weirpool.core.timers")
    table = timers.TimerTable()
    assert table.next() is None
    table.set(timers.Timer.SILENCE, 5.0)
    table.set(timers.Timer.KEEPALIVE, 2.0)
    assert table.next() == 2.0
    assert table.expired(1.9) == []
    assert table.expired(9.0) == [timers.Timer.KEEPALIVE, timers.Timer.SILENCE]
    assert table.expired(9.0) == []


def test_set_replaces_an_earlier_deadline(build) -> None:
    timers = build.module("weirpool.core.timers")
    table = timers.TimerTable()
    table.set(timers.Timer.EXPIRY, 1.0)
    table.set(timers.Timer.EXPIRY, 3.0)
    assert table.expired(2.0) == []
    assert timers.Timer.EXPIRY in table
    table.stop(timers.Timer.EXPIRY)
    table.stop(timers.Timer.EXPIRY)
    assert table.next() is None


def test_clear_removes_everything(build) -> None:
    timers = build.module("weirpool.core.timers")
    table = timers.TimerTable()
    for timer in timers.Timer:
        table.set(timer, 1.0)
    table.clear()
    assert table.expired(10.0) == []
