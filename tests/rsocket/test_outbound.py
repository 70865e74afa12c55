from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build

FRAGMENT_BYTES = 100


class Sent:
    """The outbound side of a session, and the frames that it has written."""

    def __init__(self, build: Build, fragment_bytes: int = FRAGMENT_BYTES) -> None:
        self.frames = build.module("weirpool.wire.rsocket.frames")
        self.payload = build.module("weirpool.payload")
        self.codec = build.module("weirpool.wire.rsocket.codec").Codec()
        self.outbound = build.module("weirpool.rsocket.outbound").Outbound(self.codec, fragment_bytes)
        self.outbound.linked = True
        self._deframer = build.module("weirpool.wire.framing").Deframer()

    def take(self) -> list[Any]:
        found = []
        for chunk in self.outbound.outbox.take():
            self._deframer.feed(chunk)
            while self._deframer.next():
                found.append(self.codec.decode(self._deframer.buffer, self._deframer.start, self._deframer.end))
        return found


@pytest.fixture
def sent(build: Build) -> Sent:
    return Sent(build)


@pytest.mark.parametrize("shift", range(9))
def test_long_text_of_an_error_is_cut_between_characters(sent: Sent, shift: int) -> None:
    text = "a" * shift + "é€𝄞" * 40
    sent.outbound.error(3, 0x301, text.encode())
    (frame,) = sent.take()
    assert text.startswith(frame.data.decode())
    assert FRAGMENT_BYTES - 4 < len(frame.data) <= FRAGMENT_BYTES


@pytest.mark.parametrize("done", [False, True])
def test_item_is_a_payload(sent: Sent, done: bool) -> None:
    sent.outbound.item(3, sent.payload.Payload(b"data", b"meta"), done)
    (frame,) = sent.take()
    assert (frame.stream_id, frame.data, frame.metadata) == (3, b"data", b"meta")
    assert frame.flags == sent.frames.NEXT | sent.frames.METADATA | (sent.frames.COMPLETE if done else 0)


@pytest.mark.parametrize("size", [FRAGMENT_BYTES + 1, 3 * FRAGMENT_BYTES, 100_000])
def test_large_item_is_fragmented_with_complete_in_the_last(build: Build, size: int) -> None:
    sent = Sent(build, FRAGMENT_BYTES if size < 1000 else 40_000)
    data = bytes(range(256)) * (size // 256 + 1)
    sent.outbound.item(3, sent.payload.Payload(data[:size]), True)
    frames = sent.take()
    assert b"".join(frame.data for frame in frames) == data[:size]
    assert all(len(frame.data) <= sent.outbound.fragment_bytes for frame in frames)
    follows = [bool(frame.flags & sent.frames.FOLLOWS) for frame in frames]
    completes = [bool(frame.flags & sent.frames.COMPLETE) for frame in frames]
    assert follows == [True] * (len(frames) - 1) + [False]
    # RSocket 1.0, Fragmentation: COMPLETE is set in the last frame.
    assert completes == [False] * (len(frames) - 1) + [True]


def test_large_request_continues_in_payloads(sent: Sent) -> None:
    kind = sent.frames.FrameType.REQUEST_STREAM
    sent.outbound.request(kind, 1, 0, 7, sent.payload.Payload(bytes(250), b"m" * 50))
    frames = sent.take()
    payload = sent.frames.FrameType.PAYLOAD
    assert [frame.type for frame in frames] == [kind] + [payload] * (len(frames) - 1)
    assert frames[0].request_n == 7
    assert b"".join(frame.metadata or b"" for frame in frames) == b"m" * 50
    assert b"".join(frame.data for frame in frames) == bytes(250)


def test_run_with_a_large_item_keeps_its_order(sent: Sent) -> None:
    items = [b"a", b"b" * 250, b"c"]
    run = sent.payload.PayloadRun.of([sent.payload.Payload(item) for item in items])
    sent.outbound.run(5, run, 0, 3)
    found: list[bytes] = [b""]
    for frame in sent.take():
        found[-1] += frame.data
        if not frame.flags & sent.frames.FOLLOWS:
            found.append(b"")
    assert found == [*items, b""]


def test_positions_do_not_count_prefixes(build: Build, sent: Sent) -> None:
    outbound, frames = sent.outbound, sent.frames
    outbound.control(frames.KeepaliveFrame(0, 0, b"not counted"))
    assert outbound.position == 0
    sizes = []
    for send in (
        lambda: outbound.item(1, sent.payload.Payload(b"x" * 10), False),
        lambda: outbound.request_n(1, 5),
        lambda: outbound.cancel(1),
        lambda: outbound.error(1, 0x201, b"no"),
        lambda: outbound.complete(1),
        lambda: outbound.item(1, sent.payload.Payload(b"x" * 250), False),
    ):
        before = outbound.position
        send()
        sizes.append(outbound.position - before)
    written = b"".join(outbound.outbox.take())
    keepalive = len(sent.codec.frame(frames.KeepaliveFrame(0, 0, b"not counted")))
    count = 5 + 3
    assert sizes[:5] == [6 + 10, 6 + 4, 6, 6 + 4 + 2, 6]
    assert sum(sizes) == len(written) - keepalive - 3 * count


@pytest.mark.parametrize("size", [10, 250, 90_000, 300_000])
def test_position_is_the_size_of_all_frames_without_prefixes(build: Build, size: int) -> None:
    sent = Sent(build, FRAGMENT_BYTES if size < 1_000 else 100_000)
    payload = sent.payload.Payload(bytes(size), b"metadata")
    outbound = sent.outbound
    run = sent.payload.PayloadRun.of([payload, sent.payload.Payload(b"small"), sent.payload.Payload(b"small")])
    for send in (
        lambda: outbound.request(sent.frames.FrameType.REQUEST_CHANNEL, 1, 0, 5, payload),
        lambda: outbound.item(1, payload, False),
        lambda: outbound.run(1, run, 0, 3),
    ):
        before = outbound.position
        send()
        assert outbound.position - before == sum(len(sent.codec.encode(frame)) for frame in sent.take())


def test_position_counts_the_metadata_of_a_cancel(build: Build) -> None:
    codec = build.module("weirpool.wire.rsocket.dump").codec_of("reactivesocket-0.2")
    outbound = build.module("weirpool.rsocket.outbound").Outbound(codec, FRAGMENT_BYTES)
    outbound.cancel(1, b"why")
    assert outbound.position == 6 + 3 + 3


def test_frames_without_a_link_are_only_kept(build: Build, sent: Sent) -> None:
    sent.outbound.replay = build.module("weirpool.core.replay").Replay(10_000, 3)
    sent.outbound.linked = False
    sent.outbound.item(1, sent.payload.Payload(b"later"), False)
    sent.outbound.control(sent.frames.KeepaliveFrame())
    assert sent.take() == []
    assert sent.outbound.position == 6 + 5
    sent.outbound.linked = True
    for piece in sent.outbound.replay.since(0):
        sent.outbound.outbox.write(piece)
    (frame,) = sent.take()
    assert frame.data == b"later"


def test_large_data_is_not_copied(build: Build) -> None:
    sent = Sent(build, 1 << 20)
    data = bytes(100_000)
    sent.outbound.item(1, sent.payload.Payload(data), False)
    assert any(chunk is data for chunk in sent.outbound.outbox.take())
