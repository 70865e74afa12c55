from __future__ import annotations

import pytest

from tests.reactive.probe import Probe, Scripted
from weirpool import LocalError
from weirpool.reactive import Processor, Publisher, Subscriber
from weirpool.reactive.interfaces import Starting


def test_any_object_with_the_methods_is_accepted() -> None:
    subscriber: Subscriber[bytes] = Probe()
    publisher: Publisher[bytes] = Scripted()
    starting: Starting[bytes] = Starting(lambda _: None)
    starting.subscribe(subscriber)
    with pytest.raises(LocalError, match="Scripted"):
        starting.subscribe(publisher)  # type: ignore[arg-type]
    with pytest.raises(LocalError, match="NoneType"):
        starting.subscribe(None)  # type: ignore[arg-type]


def test_a_processor_is_both() -> None:
    assert {Subscriber, Publisher} <= set(Processor.__mro__)
