"""The limit for metadata applies to every item and push, one byte below and above it."""

from __future__ import annotations

import pytest

from tests.builds import Build
from tests.rsocket.test_inbound import COMPLETE, FOLLOWS, NEXT, Receiving

LIMIT = 10


@pytest.mark.parametrize(("size", "fits"), [(LIMIT, True), (LIMIT + 1, False)])
@pytest.mark.parametrize("shape", ["item", "run", "fragments", "response"])
def test_metadata_of_an_item_is_limited(build: Build, shape: str, size: int, fits: bool) -> None:
    receiving = Receiving(build, max_metadata_bytes=LIMIT)
    stream = receiving.stream("CALL" if shape == "response" else "STREAM", 3)
    frame, payload = receiving.frames.Frame, receiving.frames.FrameType.PAYLOAD
    metadata = bytes(size)
    if shape == "run":
        items = [receiving.payload.Payload(b"", each) for each in (None, b"1", metadata)]
        receiving.inbound.run(stream, receiving.payload.PayloadRun.of(items), 0.0)
    elif shape == "fragments":
        receiving.inbound.frame(frame(payload, stream, NEXT | FOLLOWS, 0, metadata[:3], b""), 0.0)
        receiving.inbound.frame(frame(payload, stream, NEXT, 0, metadata[3:], b"data"), 0.0)
    else:
        flags = NEXT | COMPLETE if shape == "response" else NEXT
        receiving.inbound.frame(frame(payload, stream, flags, 0, metadata, b"data"), 0.0)
    if fits:
        assert receiving.names() == ["RunReceived" if shape == "run" else "ItemReceived"]
    else:
        assert receiving.names() == ["Failed"]
        assert "max_metadata_bytes (10)" in str(receiving.events[0].error)
        assert receiving.streams.get(stream) is None


@pytest.mark.parametrize("head", ["REQUEST_RESPONSE", "REQUEST_STREAM", "PAYLOAD"])
@pytest.mark.parametrize("sizes", [(LIMIT + 1,), (LIMIT, 1), (4, 4, 4)], ids=str)
def test_metadata_in_fragments_is_dropped_at_the_limit(build: Build, head: str, sizes: tuple[int, ...]) -> None:
    # Not when all of it has arrived, and has been kept: the item may be much larger.
    receiving = Receiving(build, max_metadata_bytes=LIMIT)
    receiving.outbound.linked = True
    stream = receiving.stream("STREAM", 3) if head == "PAYLOAD" else 2
    types = receiving.frames.FrameType
    for index, size in enumerate(sizes):
        assert "Failed" not in receiving.names()
        request = index == 0 and head != "PAYLOAD"
        kind, flags = (types[head], FOLLOWS) if request else (types.PAYLOAD, NEXT | FOLLOWS)
        receiving.inbound.frame(receiving.frames.Frame(kind, stream, flags, int(request), bytes(size), b""), 0.0)
    assert (len(receiving.strays.reassembly), receiving.strays.reassembly.held) == (0, 0)
    refused = b"metadata of %d bytes exceeds max_metadata_bytes (10)" % sum(sizes)
    # ERROR[INVALID], as for a request that arrives whole.
    written = b"".join(receiving.outbound.outbox.take())
    assert (b"\x2c\x00\x00\x00\x02\x04" + refused in written) == (head != "PAYLOAD")
    assert ("Failed" in receiving.names()) == (head == "PAYLOAD")
