from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.river.peers import RANDOM, Duo, messages
from weirpool.checkpoints import dissect, join, split
from weirpool.core.halves import DONE, OPEN
from weirpool.errors import LocalError, ResumeRejected
from weirpool.kinds import Kind
from weirpool.river.checkpoint import RESERVED, decode_checkpoint
from weirpool.river.connect import new_client, restored_client
from weirpool.river.identity import Identity
from weirpool.river.link import MAX_UNANSWERED
from weirpool.settings import Settings
from weirpool.wire.river.codec import ACK
from weirpool.wire.river.values import decode_value

AGAIN = b"another process..."


def opened(codec: str = "json", credit: int = 100, **settings: Any) -> tuple[Duo, int, int]:
    """Return both sides with a subscription, and its number on either side."""
    duo = Duo(codec, **settings)
    ours = duo.client.open(Kind.STREAM, "demo.count", duo.payload({}), credit)
    duo.drive()
    return duo, ours, duo.of("server", "Requested")[0].stream_id


def bring(duo: Duo, theirs: int, *items: object) -> None:
    for item in items:
        duo.server.send(theirs, duo.payload(item))
    duo.drive()


def kill(duo: Duo, checkpoint: bytes | None, codec: str = "json") -> None:
    """Replace the client by another process; the link is lost."""
    assert checkpoint is not None
    duo.client.take_output()
    duo.client = restored_client(Settings(), Identity(codec), b"", AGAIN, checkpoint, duo.client.secret)
    duo.client_events.clear()
    duo.cut()


def committed(duo: Duo, stream: int, count: int = 0) -> bytes:
    checkpoint = duo.client.checkpoint(stream, count)
    assert checkpoint is not None
    duo.client.commit()
    duo.drive()
    return checkpoint


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_another_process_resumes_at_the_checkpoint(codec: str) -> None:
    duo, ours, theirs = opened(codec)
    bring(duo, theirs, 0, 1)
    checkpoint = committed(duo, ours)
    bring(duo, theirs, 2, 3)
    kill(duo, checkpoint, codec)
    duo.link()
    assert duo.of("client", "Established")
    bring(duo, theirs, 4)
    assert duo.client.streams() == [ours]
    assert duo.items("client", ours) == [2, 3, 4]
    duo.server.complete(theirs)
    duo.drive()
    assert duo.of("client", "Completed")[0].stream_id == ours
    assert len(duo.of("server", "Requested")) == 1


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_another_process_retries_when_links_break_immediately(codec: str) -> None:
    duo, ours, theirs = opened(codec)
    bring(duo, theirs, 0)
    kill(duo, committed(duo, ours), codec)
    for attempt in range(3 * MAX_UNANSWERED):
        duo.client.link_up(attempt)
        duo.client.link_down(attempt + 0.1, None)
        assert duo.client.link_wanted, attempt
    duo.client.take_output()
    duo.link()
    bring(duo, theirs, 1)
    assert duo.items("client", ours) == [1]


def test_only_committed_messages_are_acknowledged() -> None:
    duo, ours, theirs = opened()
    duo.client.checkpoint(ours, 0)
    bring(duo, theirs, 0)
    duo.client.checkpoint(ours, 0)
    bring(duo, theirs, 1, 2)
    duo.advance(3.0)
    assert duo.server.sequence.first == 1 and not duo.of("server", "Unlinked")
    duo.client.commit()
    duo.drive()
    # Items after the checkpoint are received as usual.
    assert duo.server.sequence.first == 2
    duo.client.commit()
    assert duo.client.take_output() == []
    committed(duo, ours)
    assert duo.server.sequence.first == duo.server.sequence.seq


def test_answers_after_the_checkpoint_are_compensated() -> None:
    duo, ours, theirs = opened()
    bring(duo, theirs, 0)
    checkpoint = committed(duo, ours)
    duo.advance(30.0)
    handled = duo.server.sequence.ack
    assert handled > 30
    kill(duo, checkpoint)
    duo.link()
    duo.drive()
    committed(duo, ours)
    # Both sides agree on the next number.
    assert duo.server.sequence.ack == duo.client.sequence.seq > handled
    duo.client.cancel(ours)
    duo.drive()
    assert duo.of("server", "Canceled")
    duo.advance(30.0)
    assert not duo.of("server", "Unlinked")


def test_no_more_acknowledgements_than_reserved_are_sent() -> None:
    duo, ours, theirs = opened(session_grace=1e6)
    bring(duo, theirs, 0)
    checkpoint = committed(duo, ours)
    kept = decode_checkpoint(checkpoint, "json")
    assert kept.reserved == RESERVED + 60
    end = kept.seq + kept.reserved
    for _ in range(2 * kept.reserved):
        duo.server._outbound.send_heartbeat()
        duo.drive()
    assert duo.client.sequence.seq == duo.server.sequence.ack == end
    # The next checkpoint reserves more numbers.
    committed(duo, ours)
    duo.server._outbound.send_heartbeat()
    duo.drive()
    assert duo.client.sequence.seq == duo.server.sequence.ack == end + 2


def test_restored_session_is_silent_before_its_first_checkpoint() -> None:
    duo, ours, theirs = opened()
    bring(duo, theirs, 0)
    checkpoint = committed(duo, ours)
    for _ in range(3):
        kill(duo, checkpoint)
        duo.link()
        for _ in range(5):
            duo.server._outbound.send_heartbeat()
            duo.drive()
        assert duo.server.sequence.ack == duo.client.sequence.seq
        assert not duo.of("client", "Closed")


def test_messages_sent_after_the_checkpoint_prevent_resumption() -> None:
    duo, ours, theirs = opened()
    bring(duo, theirs, 0)
    checkpoint = committed(duo, ours)
    for _ in range(200):
        duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
        duo.drive()
    kill(duo, checkpoint)
    duo.link()
    duo.server._outbound.send_heartbeat()
    duo.drive()
    error = duo.of("client", "Closed")[0].error
    assert isinstance(error, ResumeRejected) and "sent after its checkpoint" in str(error)


def test_unrequested_items_are_sent_again() -> None:
    duo, ours, theirs = opened(credit=2)
    committed(duo, ours)
    bring(duo, theirs, 0, 1, 2, 3)
    duo.server.complete(theirs)
    duo.drive()
    assert duo.items("client", ours) == [0, 1]
    checkpoint = committed(duo, ours, 1)
    duo.listen()
    # The commit requested it, and no checkpoint covers it.
    assert duo.items("client", ours) == [0, 1, 2]
    kill(duo, checkpoint)
    duo.link()
    assert duo.items("client", ours) == [2]
    duo.client.request(ours, 1)
    duo.listen()
    assert duo.items("client", ours) == [2, 3] and duo.of("client", "Completed")


def test_stream_sees_nothing_twice_while_another_holds_items() -> None:
    duo, ours, theirs = opened(credit=1)
    committed(duo, ours)
    bring(duo, theirs, 0, 1)
    other = duo.client.open(Kind.STREAM, "demo.count", duo.payload({}), 100)
    duo.drive()
    bring(duo, duo.of("server", "Requested")[1].stream_id, "a", "b")
    kill(duo, committed(duo, other))
    # Another checkpoint, before any message was repeated.
    kill(duo, committed(duo, other))
    duo.link()
    bring(duo, duo.of("server", "Requested")[1].stream_id, "c")
    assert duo.items("client", other) == ["c"]
    duo.client.request(ours, 1)
    duo.listen()
    assert duo.items("client", ours) == [1]


def test_unacknowledged_messages_are_sent_again() -> None:
    duo, ours, theirs = opened()
    bring(duo, theirs, 0)
    duo.cut()
    call = duo.client.open(Kind.CALL, "demo.add", duo.payload({"a": 1}), 1)
    checkpoint = duo.client.checkpoint(ours, 0)
    kill(duo, checkpoint)
    duo.link()
    asked = duo.of("server", "Requested")[-1]
    assert decode_value(asked.payload.data, "json") == {"a": 1}
    duo.server.send(asked.stream_id, duo.payload("done"), True)
    duo.drive()
    assert duo.items("client", call) == ["done"]
    # A new stream has a new name and a new number.
    committed(duo, ours)
    assert duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1) == call + 1
    duo.drive()
    assert len(duo.of("server", "Requested")) == 3


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_unacknowledged_requests_are_in_the_private_part(codec: str) -> None:
    # THREATS 100
    duo, ours, theirs = opened(codec)
    bring(duo, theirs, 0)
    duo.cut()
    duo.client.open(Kind.CALL, "demo.add", duo.payload({"password": "hidden"}), 1)
    duo.client._outbound.send_heartbeat()
    checkpoint = duo.client.checkpoint(ours, 0)
    assert checkpoint is not None
    public, private = split(checkpoint)
    assert (b"hidden" in public, b"hidden" in private) == (False, True)
    # Heartbeats after the last request are not secret.
    assert len(decode_checkpoint(join(public, b""), codec).unacked) == 1
    assert decode_checkpoint(checkpoint, codec).unacked == duo.client.sequence.unacked
    kill(duo, checkpoint, codec)
    duo.link()
    assert decode_value(duo.of("server", "Requested")[-1].payload.data, codec) == {"password": "hidden"}
    bring(duo, theirs, 1)
    assert dissect(committed(duo, ours))[1].messages == []


def test_later_private_part_fits_an_earlier_checkpoint() -> None:
    duo, ours, theirs = opened()
    bring(duo, theirs, 0)
    duo.cut()
    duo.client.open(Kind.CALL, "demo.add", duo.payload({"a": 1}), 1)
    earlier = duo.client.checkpoint(ours, 0)
    duo.client.open(Kind.CALL, "demo.add", duo.payload({"a": 2}), 1)
    later = duo.client.checkpoint(ours, 0)
    assert earlier is not None and later is not None
    mixed = join(split(earlier)[0], split(later)[1])
    assert decode_checkpoint(mixed, "json") == decode_checkpoint(earlier, "json")
    # Everything is acknowledged and dropped; the rest begins after it.
    duo.link()
    kept = decode_checkpoint(join(split(earlier)[0], b""), "json")
    assert kept.unacked == []
    kill(duo, join(split(earlier)[0], b""))
    assert duo.client.sequence.first == kept.seq


def test_metadata_of_the_client_is_not_in_the_public_part() -> None:
    # THREATS 100
    said = msgspec.json.encode({"token": "hidden"})
    duo = Duo()
    duo.cut()
    duo.client = client = new_client(Settings(), Identity(), said, AGAIN)
    duo.link()
    ours = client.open(Kind.STREAM, "demo.count", duo.payload({}), 1)
    duo.drive()
    bring(duo, duo.of("server", "Requested")[0].stream_id, 0)
    duo.server.rehandshake(duo.now)
    # It has answered a rehandshake, which is not acknowledged yet.
    client.receive(b"".join(duo.server.take_output()), duo.now)
    checkpoint = client.checkpoint(ours, 0)
    assert checkpoint is not None
    assert [b"hidden" in part for part in split(checkpoint)] == [False, True]


def test_reserved_numbers_are_filled_with_acknowledgements() -> None:
    duo, ours, theirs = opened()
    bring(duo, theirs, 0)
    checkpoint = committed(duo, ours)
    session = restored_client(Settings(), Identity(), b"", AGAIN, checkpoint, duo.client.secret)
    filled = messages(session.sequence.unacked)
    said = [message for message in filled if message.seq >= decode_checkpoint(checkpoint, "json").seq]
    assert len(said) == RESERVED + 60
    assert {message.control_flags for message in said} == {ACK}
    # The greeting and the item.
    assert {message.ack for message in said} == {2}


def test_unanswered_session_is_not_restored() -> None:
    duo = Duo()
    duo.cut()
    duo.client = new_client(Settings(), Identity(), b"", RANDOM)
    ours = duo.client.open(Kind.STREAM, "demo.count", duo.payload({}), 1)
    with pytest.raises(ResumeRejected, match="had not answered before"):
        kill(duo, duo.client.checkpoint(ours, 0))


def test_first_checkpoint_is_none_while_items_are_held() -> None:
    duo, ours, theirs = opened(credit=1)
    bring(duo, theirs, 0, 1)
    assert duo.client.checkpoint(ours, 0) is None
    duo.client.request(ours, 1)
    assert duo.client.checkpoint(ours, 0) is not None


def test_servers_and_closed_sessions_have_no_checkpoint() -> None:
    duo, ours, theirs = opened()
    assert duo.server.checkpoint(theirs, 0) is None
    duo.client.close(duo.now, ResumeRejected("over"))
    assert duo.client.checkpoint(ours, 0) is None
    duo.client.commit()
    assert duo.client.take_output() == []


def test_invalid_checkpoint_is_rejected() -> None:
    duo, ours, _ = opened()
    checkpoint = duo.client.checkpoint(ours, 0)
    assert checkpoint is not None
    with pytest.raises(LocalError, match="checkpoint"):
        decode_checkpoint(b"junk", "json")
    with pytest.raises(LocalError, match="codec=msgpack"):
        decode_checkpoint(checkpoint, "msgpack")
    public, private = split(checkpoint)
    fields = msgspec.msgpack.decode(public)
    fields["version"] = 1
    with pytest.raises(LocalError, match="of version 1"):
        decode_checkpoint(join(msgspec.msgpack.encode(fields), private), "json")
    with pytest.raises(LocalError, match="not a checkpoint of a River session"):
        decode_checkpoint(join(b"junk", private), "json")
    with pytest.raises(LocalError, match="not a checkpoint of a River session"):
        decode_checkpoint(join(public.replace(b"SERVER", b"SERVE\xff"), private), "json")


def test_checkpoint_has_the_state_of_each_stream() -> None:
    duo, ours, _ = opened(credit=5)
    other = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 7)
    duo.drive()
    duo.server.complete(duo.of("server", "Requested")[1].stream_id)
    duo.drive()
    counting, echoing = decode_checkpoint(duo.client.checkpoint(ours, 2) or b"", "json").streams
    assert (counting.number, counting.kind, counting.inbound, counting.outbound) == (ours, Kind.STREAM, OPEN, DONE)
    assert (echoing.number, echoing.kind, echoing.inbound, echoing.outbound) == (other, Kind.CHANNEL, DONE, OPEN)
    assert (counting.granted, echoing.granted) == (7, 7)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("covered", -1, "not a checkpoint"),
        ("seq", 1 << 53, "not a checkpoint"),
        ("unacked", [b"message"] * 9, "9 messages before number"),
        ("reserved", 10_001, "more than max_unacked"),
        ("streams", [[1, "s", 9, 1, 2, 5, 0]], "not a checkpoint"),
        ("streams", [[1, "s", 3, 3, 2, 5, 0]], "not a checkpoint"),
        ("streams", [[1, "s", 3, 1, 2, -5, 0]], "not a checkpoint"),
    ],
)
def test_impossible_numbers_in_a_checkpoint_are_rejected(field: str, value: object, why: str) -> None:
    duo, ours, _ = opened()
    public, private = split(duo.client.checkpoint(ours, 0) or b"")
    fields = {**msgspec.msgpack.decode(public), field: value}
    damaged = join(msgspec.msgpack.encode(fields), private)
    with pytest.raises(LocalError, match=why):
        restored_client(Settings(), Identity(), b"", AGAIN, damaged, duo.client.secret)


def test_small_max_unacked_reserves_few_numbers() -> None:
    duo, ours, _ = opened(max_unacked=8)
    checkpoint = duo.client.checkpoint(ours, 0)
    assert checkpoint is not None and decode_checkpoint(checkpoint, "json").reserved == 2
