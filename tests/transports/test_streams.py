from __future__ import annotations

import asyncio

from tests.transports.recording import Place, Recorder
from tests.waiting import turns
from weirpool import LinkLost, Settings
from weirpool.transports import streams
from weirpool.transports.streams import WINDOW_BYTES, Slot, StreamLink, StreamListener
from weirpool.urls import parse_url


class Carrier:
    """A connection that notes what its link asks for.

    Attributes:
        room: How many bytes the peer takes.
        sent: What it has taken.
        taken: How much of it the connection still holds.
        allowed: By how much its window was opened.
        asked: What else was asked for.

    """

    def __init__(self) -> None:
        self.room = 0
        self.sent = b""
        self.taken = 0
        self.allowed = 0
        self.asked: list[str] = []

    def send(self, link: StreamLink) -> None:
        self.sent += link.take(self.room - len(self.sent))
        if link.ending:
            self.asked.append("end")
            link.end_sent()

    def extend_window(self, link: StreamLink, count: int) -> None:
        self.allowed += count

    def waiting(self, link: StreamLink) -> int:
        return self.taken

    def progress(self, link: StreamLink) -> tuple[int, int]:
        return 0, len(self.sent)

    def ended(self, link: StreamLink) -> None:
        self.asked.append("ended")
        link.lose(None)

    def reset(self, link: StreamLink) -> None:
        self.asked.append("reset")
        link.lose(None)


def made(high_bytes: int = 1_000) -> tuple[Carrier, StreamLink, Recorder]:
    carrier, recorder = Carrier(), Recorder()
    link = StreamLink(carrier, 1, recorder, high_bytes)
    recorder.link_made(link)
    return carrier, link, recorder


async def test_output_waits_and_pauses_its_writer() -> None:
    carrier, link, recorder = made()
    link.write(b"a" * 1_000)
    assert recorder.told == ["made"]
    link.write(b"b" * 1_000)
    assert (recorder.told, link.get_write_buffer_size()) == (["made", "paused"], 2_000)
    carrier.room = 1_700
    carrier.send(link)
    await turns(1)
    assert recorder.told == ["made", "paused"]
    carrier.room = 1_750
    carrier.send(link)
    # What a writer adds when it is resumed must not come before what was being sent.
    assert recorder.told == ["made", "paused"]
    await turns(1)
    assert recorder.told == ["made", "paused", "resumed"]
    assert carrier.sent == b"a" * 1_000 + b"b" * 750


async def test_paused_reader_does_not_extend_the_window() -> None:
    carrier, link, recorder = made()
    link.pause_reading()
    half = bytes(WINDOW_BYTES // 2)
    link.received(half, len(half))
    link.received(half, len(half))
    await turns(2)
    # The receiver is told each time, and counts what waits. THREATS 84
    assert (recorder.data, recorder.reads, link.unread, carrier.allowed) == (b"", 2, WINDOW_BYTES, 0)
    link.resume_reading()
    # In a turn of its own, and what comes until then stays behind it.
    link.received(b"later", 5)
    assert recorder.data == b""
    await turns(1)
    assert (recorder.data, link.unread) == (half + half + b"later", 0)
    assert carrier.allowed == WINDOW_BYTES


async def test_padding_that_is_not_read_takes_no_memory() -> None:
    carrier, link, _ = made()
    link.pause_reading()
    for _ in range(WINDOW_BYTES // 512):
        link.received(b"x", 257)
    assert (link.unread, carrier.allowed) == (WINDOW_BYTES // 512, WINDOW_BYTES // 2)


async def test_output_that_the_connection_holds_counts_for_its_link() -> None:
    carrier, link, _ = made()
    link.write(b"x" * 500)
    carrier.taken = 70
    assert (link.get_write_buffer_size(), link.unsent) == (570, 500)


async def test_the_window_opens_in_large_steps_padding_included() -> None:
    carrier, link, recorder = made()
    link.received(b"x", WINDOW_BYTES // 2 - 1)
    assert carrier.allowed == 0
    link.received(b"y", 1)
    assert (recorder.data, carrier.allowed) == (b"xy", WINDOW_BYTES // 2)


async def test_pause_during_delivery_stops_it() -> None:
    _, link, recorder = made()
    link.pause_reading()
    link.received(b"1", 1)
    link.received(b"2", 1)
    link.resume_reading()
    link.pause_reading()
    await turns(1)
    assert recorder.data == b""
    link.resume_reading()
    await turns(1)
    assert recorder.data == b"12"


async def test_close_waits_for_output_and_for_the_peers_end() -> None:
    carrier, link, recorder = made()
    link.write(b"last")
    link.close()
    link.write(b"too late")
    assert carrier.asked == []
    carrier.room = 100
    carrier.send(link)
    assert (carrier.sent, carrier.asked) == (b"last", ["end"])
    link.received(b"nobody reads it", WINDOW_BYTES)
    assert carrier.allowed == WINDOW_BYTES
    link.peer_ended()
    assert carrier.asked == ["end", "ended"]
    assert await recorder.lost() is None
    assert (recorder.data, recorder.told) == (b"", ["made", "lost"])


async def test_end_of_the_peer_follows_its_data() -> None:
    carrier, link, recorder = made()
    link.pause_reading()
    link.received(b"last", 4)
    link.peer_ended()
    assert carrier.asked == []
    link.resume_reading()
    assert await recorder.lost() is None
    assert (recorder.data, carrier.asked) == (b"last", ["end", "ended"])


async def test_end_waits_while_reading_is_paused() -> None:
    carrier, link, _ = made()
    link.pause_reading()
    link.peer_ended()
    await turns(2)
    assert carrier.asked == []
    link.resume_reading()
    await turns(1)
    assert carrier.asked == ["end", "ended"]


async def test_abort_discards_unsent_output() -> None:
    carrier, link, recorder = made()
    link.write(b"never")
    link.abort()
    link.abort()
    assert recorder.told == ["made"]
    assert await recorder.lost() is None
    carrier.room = 100
    carrier.send(link)
    link.write(b"never")
    link.close()
    assert (carrier.sent, carrier.asked, link.get_write_buffer_size()) == (b"", ["reset"], 0)


async def test_a_close_that_the_peer_does_not_answer_is_an_abort() -> None:
    carrier, link, recorder = made()
    link.close()
    assert link._closing is not None
    assert link._closing._timer.when() - asyncio.get_running_loop().time() <= streams.LINGER
    link.abort()
    await recorder.lost()
    assert link._closing._timer.cancelled()
    assert carrier.asked == ["end", "reset"]


async def test_a_link_is_lost_once_with_its_error() -> None:
    _, link, recorder = made()
    link.lose(LinkLost("first"))
    link.lose(LinkLost("second"))
    assert str(await recorder.lost()) == "first"
    link.received(b"late", 4)
    link.peer_ended()
    await turns(2)
    assert (recorder.told, recorder.data) == (["made", "lost"], b"")


async def test_bytes_that_were_held_are_not_lost_in_silence() -> None:
    _, link, recorder = made()
    link.pause_reading()
    link.received(b"unread", 6)
    link.lose(None)
    assert "while reading was paused" in str(await recorder.lost())


# Slots.


def slot(place: Place) -> tuple[Slot, list[str]]:
    ends: list[str] = []
    listener: StreamListener[None] = StreamListener(parse_url("rsocket+h2c://127.0.0.1:1"), place.accept, Settings())
    return Slot(listener, ends.append), ends


async def test_evicted_slot_ends_a_connection_without_links() -> None:
    # THREATS 95
    place = Place()
    reserved, ends = slot(place)
    reserved.reserve()
    (hang_up,) = place.hang_ups
    assert hang_up is not None
    hang_up("why")
    assert ends == ["why"]
    # The server knows it.
    reserved.lose(None)
    await turns(3)
    assert place.accepted[0].told == []


async def test_evicted_slot_spares_a_connection_with_links() -> None:
    place = Place()
    reserved, ends = slot(place)
    reserved.reserve()
    reserved.release()
    reserved.evict("why")
    assert ends == [] and place.accepted[0].told == []


async def test_evicted_slot_cuts_a_connection_whose_socket_is_not_ready() -> None:
    place = Place()
    reserved, ends = slot(place)
    cuts: list[str] = []
    reserved.cut = cuts.append
    reserved.evict("why")
    assert (cuts, ends) == (["why"], [])


async def test_connection_that_gets_no_slot_is_told_why() -> None:
    place = Place()
    place.refusing = True
    reserved, ends = slot(place)
    reserved.reserve()
    assert ends == ["the server is full"]
