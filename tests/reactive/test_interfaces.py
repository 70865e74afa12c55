from __future__ import annotations

import pytest

from penstock import LocalError
from penstock.reactive import Processor, Publisher, Subscriber
from penstock.reactive.interfaces import check_subscriber
from tests.reactive.probe import Probe, Scripted


def test_whatever_has_the_methods_is_one() -> None:
    subscriber: Subscriber[bytes] = Probe()
    publisher: Publisher[bytes] = Scripted()
    check_subscriber(subscriber)
    with pytest.raises(LocalError, match="Scripted"):
        check_subscriber(publisher)
    with pytest.raises(LocalError, match="NoneType"):
        check_subscriber(None)


def test_a_processor_is_both() -> None:
    assert {Subscriber, Publisher} <= set(Processor.__mro__)
