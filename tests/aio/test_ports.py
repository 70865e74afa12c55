from __future__ import annotations

import pytest

from penstock.aio.admission import Admission
from penstock.aio.dispatch import Dispatch, TaskAnswer
from penstock.aio.inbound import ReceiveBuffer
from penstock.aio.late_answer import LateAnswer
from penstock.aio.ports import Gatekeeper, ReceivingHalf, SendingHalf, Sink
from penstock.aio.pump import Pump, TaskPump


@pytest.mark.parametrize(
    ("port", "part"),
    [
        (SendingHalf, Pump),
        (SendingHalf, TaskPump),
        (SendingHalf, TaskAnswer),
        (SendingHalf, LateAnswer),
        (ReceivingHalf, ReceiveBuffer),
        (Sink, Dispatch),
        (Gatekeeper, Admission),
    ],
)
def test_each_part_has_all_that_its_port_names(port: type, part: type) -> None:
    names = port.__abstractmethods__  # type: ignore[attr-defined]
    assert names and all(hasattr(part, name) for name in names)
