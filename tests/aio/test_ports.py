from __future__ import annotations

import pytest

from weirpool.aio.admission import Admission
from weirpool.aio.dispatch import Dispatch, TaskAnswer
from weirpool.aio.inbound import ReceiveBuffer
from weirpool.aio.late_answer import LateAnswer
from weirpool.aio.ports import Gatekeeper, ReceivingHalf, SendingHalf, Sink
from weirpool.aio.pump import Pump, TaskPump


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
