from __future__ import annotations

import pytest

from tests.wire.conftest import Wire
from tests.wire.rsocket.test_v00 import decoded


# THREATS 13, 19.
def test_unknown_types_need_ignore_and_unknown_flags_do_not(wire: Wire) -> None:
    frame = decoded(wire, "00 80 0077 0000000000000001 6162")
    assert (wire.dump.to_object(frame, "reactivesocket-0.0")["type"], frame.data) == ("0x0077", b"ab")
    assert wire.v00.encode(frame).hex() == "008000770000000000000001" + "6162"
    assert decoded(wire, "00 0f 0011 0000000000000001").flags == 0


def test_types_of_other_dialects_are_refused(wire: Wire) -> None:
    for frame in (wire.frames.KeepaliveFrame(), wire.frames.Frame(7, 1), wire.frames.ResumeFrame()):
        with pytest.raises(wire.errors.LocalError, match=r"ReactiveSocket 0\.0 does not have"):
            wire.v00.encode(frame)
