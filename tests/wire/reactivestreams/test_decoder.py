from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builds import Build
from tests.sim.pair import CUTS
from tests.wire.reactivestreams.test_codec import MEANT, VECTORS
from weirpool import FrameError, LimitExceeded, ProtocolError
from weirpool.wire.columns import ColumnBuilder
from weirpool.wire.reactivestreams.codec import EXTENDED, LAYOUTS, MAX_VARINT, Items, Message, Type, encode, varint
from weirpool.wire.reactivestreams.decoder import Decoder

IDS = st.one_of(st.integers(0, 3), st.integers(0, MAX_VARINT))
NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, MAX_VARINT))
TEXTS = st.text(max_size=20).map(str.encode)
OCTETS = st.binary(max_size=300)


@st.composite
def conversations(draw: Any) -> list[tuple[Message, int]]:
    """Consecutive messages, each with the element size of its stream."""
    sizes: dict[int, int] = {}
    found: list[tuple[Message, int]] = []
    for _ in range(draw(st.integers(0, 12))):
        type = draw(st.sampled_from([*LAYOUTS, *EXTENDED, Type.ON_NEXT, Type.ON_NEXT, Type.ON_NEXT_PACKED]))
        message = Message(type, draw(IDS) if type not in (1, 2, 13) else 0)
        size = sizes.get(message.subscriber, 0)
        if type in (1, 2):
            message.number, message.ids = draw(NUMBERS), tuple(draw(st.lists(IDS, max_size=5)))
        elif type == Type.SUBSCRIBED:
            message.number = sizes[message.subscriber] = draw(st.integers(0, 5))
        elif type in (Type.SUBSCRIBE, Type.REQUEST, Type.ON_NEXT_PART, Type.ON_NEXT_LAST_PART):
            message.number = draw(NUMBERS)
        if type in (Type.SUBSCRIBE, Type.ON_ERROR, Type.GOODBYE):
            message.data = draw(TEXTS)
        elif type == Type.ON_NEXT_PACKED:
            if not size:
                continue
            message.number = draw(st.integers(1, 4))
            message.data = draw(st.binary(min_size=size * message.number, max_size=size * message.number))
        elif type == Type.ON_NEXT and size:
            message.data = draw(st.binary(min_size=size, max_size=size))
        elif (type >= Type.ON_NEXT_PART and type != Type.GOODBYE) or type == Type.ON_NEXT:
            message.data = draw(OCTETS)
        found.append((message, size))
    return found


def read(raw: bytes, cut: Callable[[bytes], Iterable[bytes]], **options: Any) -> list[Message | Items]:
    decoder = Decoder(**options)
    decoder.extensions.update(EXTENDED)
    found: list[Message | Items] = []
    for piece in cut(raw):
        decoder.feed(piece)
        while (message := decoder.next()) is not None:
            found.append(message)
    assert decoder.pending == 0
    assert decoder.position == len(raw)
    return found


def flat(messages: list[Any], sizes: dict[int, int]) -> list[tuple[int, bytes] | Message]:
    """Return the messages with separate elements."""
    found: list[Any] = []
    for message in messages:
        if isinstance(message, Items):
            assert message.run.size == sum(len(payload.data) for payload in message.run.payloads())
            found += [(message.subscriber, payload.data) for payload in message.run.payloads()]
        elif message.type == Type.ON_NEXT:
            found.append((message.subscriber, message.data))
        elif message.type == Type.ON_NEXT_PACKED:
            size = len(message.data) // message.number
            found += [(message.subscriber, message.data[at : at + size]) for at in range(0, len(message.data), size)]
        else:
            found.append(message)
    return found


@given(conversations(), st.sampled_from([*CUTS]))
def test_messages_are_decoded_from_split_input(conversation: list[tuple[Message, int]], cut: str) -> None:
    raw = b"".join(encode(message, size) for message, size in conversation)
    messages = [message for message, _ in conversation]
    assert read(raw, CUTS[cut], runs=False) == messages
    assert flat(read(raw, CUTS[cut]), {}) == flat(messages, {})


@pytest.mark.parametrize(("vector", "message"), list(zip(VECTORS, MEANT, strict=True)), ids=lambda each: str(each)[:30])
def test_vectors(vector: dict[str, Any], message: Message) -> None:
    raw = bytes.fromhex(vector["hex"])
    raw += message.data if len(raw) < vector["bytes"] else b""
    for cut in (CUTS["whole"], CUTS["random"]):
        assert read(raw, cut) == [message]


@given(st.binary(max_size=200), st.integers(0, 1 << 30))
def test_junk_is_decoded_alike_from_split_input(raw: bytes, seed: int) -> None:
    def outcome(pieces: Iterable[bytes]) -> list[Any]:
        decoder = Decoder(max_element_bytes=1000, runs=False)
        found: list[Any] = []
        try:
            for piece in pieces:
                decoder.feed(piece)
                while (message := decoder.next()) is not None:
                    found.append(message)
        except (FrameError, LimitExceeded) as error:
            found.append(type(error))
        return found

    rng = random.Random(seed)
    marks = sorted(rng.sample(range(len(raw) + 1), min(3, len(raw))))
    pieces = [raw[a:b] for a, b in zip([0, *marks], [*marks, len(raw)], strict=True)]
    assert outcome([raw]) == outcome(pieces) == outcome(raw[at : at + 1] for at in range(len(raw)))


# Both builds.


def told(build: Build, pieces: list[bytes], **options: Any) -> list[Any]:
    """Return the results of a build's decoder for some pieces, as plain values."""
    decoder = build.module("weirpool.wire.reactivestreams.decoder").Decoder(**options)
    decoder.extensions.update(build.module("weirpool.wire.reactivestreams.codec").EXTENDED)
    errors = build.module("weirpool.errors")
    found: list[Any] = []
    try:
        for piece in pieces:
            decoder.feed(piece)
            while (message := decoder.next()) is not None:
                if hasattr(message, "run"):
                    items = [(each.data, each.metadata) for each in message.run.payloads()]
                    found.append((message.subscriber, message.announced, items, message.run.width))
                else:
                    found.append((message.type, message.subscriber, message.number, message.data, message.ids))
            found.append((decoder.pending, decoder.position))
    except (errors.ProtocolError, errors.LimitExceeded) as error:
        found.append((type(error).__name__, str(error)))
    return found


@given(conversations(), st.sampled_from([*CUTS]), st.booleans(), st.binary(max_size=20))
def test_both_builds_decode_alike(
    builds: dict[str, Build], conversation: list[tuple[Message, int]], cut: str, runs: bool, junk: bytes
) -> None:
    raw = b"".join(encode(message, size) for message, size in conversation) + junk
    pieces = list(CUTS[cut](raw))
    said = [told(build, pieces, runs=runs, max_element_bytes=300) for build in builds.values()]
    assert all(one == said[0] for one in said)


@given(st.binary(max_size=100), st.booleans())
def test_both_builds_decode_junk_alike(builds: dict[str, Build], junk: bytes, runs: bool) -> None:
    said = [told(build, [b"\x06\x01\x04", junk], runs=runs) for build in builds.values()]
    assert all(one == said[0] for one in said)


# Runs.


def test_consecutive_elements_of_a_stream_are_one_run() -> None:
    raw = b"".join(encode(Message(Type.ON_NEXT, 300, 0, b"%d" % number)) for number in range(1000))
    other = encode(Message(Type.ON_NEXT, 301, 0, b"other"))
    decoder = Decoder()
    decoder.feed(raw + other + raw)
    first, single, last = decoder.next(), decoder.next(), decoder.next()
    assert isinstance(first, Items) and isinstance(last, Items)
    assert single == Message(Type.ON_NEXT, 301, 0, b"other")
    assert (len(first.run), first.run.sound, first.announced) == (1000, True, 0)
    builder = ColumnBuilder()
    builder.append(first.run)
    assert builder.finish().column("data").to_pylist() == [b"%d" % number for number in range(1000)]


def test_long_run_of_elements_is_split() -> None:
    raw = b"".join(encode(Message(Type.ON_NEXT, 1, 0, bytes((number % 7,)))) for number in range(3000))
    decoder = Decoder()
    decoder.feed(raw)
    runs: list[Any] = [decoder.next(), decoder.next(), decoder.next()]
    assert decoder.next() is None
    assert [len(items.run) for items in runs] == [1024, 1024, 952]
    assert [payload.data for items in runs for payload in items.run] == [bytes((n % 7,)) for n in range(3000)]


def test_packed_run_makes_no_object_for_each_element() -> None:
    data = bytes(range(256)) * 1024
    decoder = Decoder()
    decoder.feed(encode(Message(Type.SUBSCRIBED, 1, 8)) + encode(Message(Type.ON_NEXT_PACKED, 1, 32768, data), 8))
    decoder.next()
    items = decoder.next()
    assert isinstance(items, Items) and items.announced == 32768
    assert items.run.check(0, 32768) == len(data)
    assert b"".join(payload.data for payload in items.run.payloads()) == data


def test_packed_run_is_returned_as_it_arrives_without_copies() -> None:
    count = 1000
    data = bytes(range(200)) * (count * 8 // 200)
    raw = encode(Message(Type.ON_NEXT_PACKED, 1, count, data), 8) + encode(Message(Type.CANCEL, 9))
    decoder = Decoder()
    decoder.feed(encode(Message(Type.SUBSCRIBED, 1, 8)))
    decoder.next()
    pieces = [raw[at : at + 501] for at in range(0, len(raw), 501)]
    found: list[Any] = []
    for piece in pieces:
        decoder.feed(piece)
        while (message := decoder.next()) is not None:
            found.append(message)
        # Less than one element is kept.
        assert decoder.pending < 8
    assert found.pop() == Message(Type.CANCEL, 9)
    assert [items.announced for items in found] == [count] + [0] * (len(found) - 1)
    assert b"".join(payload.data for items in found for payload in items.run.payloads()) == data
    # Only elements that are split between pieces are copied.
    lying = [items.run for items in found if any(items.run.buffer is piece for piece in pieces)]
    assert sum(len(run) for run in lying) >= count - len(pieces)
    assert decoder.position == len(raw) + 3


def test_element_size_is_valid_until_the_next_subscribed() -> None:
    # READING rs/0, 1: also after the subscriber has canceled.
    raw = bytes.fromhex("0601040701") + b"abcd" + bytes.fromhex("060100070102") + b"ef"
    assert read(raw, CUTS["byte by byte"]) == [
        Message(Type.SUBSCRIBED, 1, 4),
        Message(Type.ON_NEXT, 1, 0, b"abcd"),
        Message(Type.SUBSCRIBED, 1, 0),
        Message(Type.ON_NEXT, 1, 0, b"ef"),
    ]


# Hostile input.

SUBSCRIBED_4 = "060104"


@pytest.mark.parametrize(
    ("raw", "error", "what"),
    [
        # THREATS 68.
        ("0401" + "ff" * 9, FrameError, "demand is longer than 9 bytes"),
        ("0401" + "80" * 12 + "01", FrameError, "longer than 9 bytes"),
        ("04018000", FrameError, "byte 2: demand is not in its shortest form"),
        ("04810001", FrameError, "subscriber is not in its shortest form"),
        ("87000100", FrameError, "message type is not in its shortest form"),
        # THREATS 69.
        ("0a0105", FrameError, "no fixed size"),
        (SUBSCRIBED_4 + "0a0100", FrameError, "no elements"),
        (SUBSCRIBED_4 + "0a01ffffffffffffffff7f", LimitExceeded, "the maximum is 16777216"),
        ("0601ffffffffffffffff7f", LimitExceeded, "elementSize of subscribed is"),
        # THREATS 71.
        ("0100c0843d", LimitExceeded, "1000000 extensions; the maximum is 1024"),
        ("00", FrameError, "message type 0 cannot be read: the type is unknown"),
        ("0e", FrameError, "message type 14"),
        ("810100", FrameError, "message type 129"),
        ("03818004", LimitExceeded, "publisher of subscribe has 65537 bytes"),
        ("070181808008", LimitExceeded, "element of onNext has 16777217 bytes"),
        ("0b010181808008", LimitExceeded, "data of onNextPart"),
        ("090102c328", FrameError, "error of onError is not valid UTF-8"),
        ("0d01ff", FrameError, "reason of goodbye is not valid UTF-8"),
    ],
)
def test_hostile_messages_are_refused(raw: str, error: type[ProtocolError], what: str) -> None:
    for cut in CUTS.values():
        with pytest.raises(error, match=what):
            read(bytes.fromhex(raw), cut)


def test_extension_is_only_read_if_enabled() -> None:
    message = Message(Type.ON_NEXT_METADATA, 1, 0, b"meta")
    decoder = Decoder(max_metadata_bytes=3)
    decoder.feed(encode(message))
    with pytest.raises(FrameError, match="its extension is not enabled"):
        decoder.next()
    decoder.extensions.update(EXTENDED)
    with pytest.raises(LimitExceeded, match="metadata of onNextMetadata has 4 bytes"):
        decoder.next()


def test_first_message_must_be_hello_or_goodbye() -> None:
    for raw, first in ((b"\x04\x01\x01", None), (b"\x0d\x00", Type.GOODBYE), (b"\x01\x00\x00", Type.CLIENT_HELLO)):
        decoder = Decoder(first=Type.CLIENT_HELLO)
        decoder.feed(raw)
        if first is None:
            with pytest.raises(FrameError, match="request arrived before clientHello"):
                decoder.next()
        else:
            message = decoder.next()
            assert isinstance(message, Message) and message.type == first
            assert decoder.first == 0


def test_long_message_is_joined_once_without_preallocation() -> None:
    decoder = Decoder()
    decoder.feed(b"\x07\x01" + varint(16 << 20))
    assert decoder.next() is None
    assert decoder.pending == 6
    for _ in range(1024):
        decoder.feed(bytes(16 << 10))
        if decoder.pending < (16 << 20) + 6:
            # It is not decoded.
            assert decoder.size == 0
    message = decoder.next()
    assert isinstance(message, Message) and len(message.data) == 16 << 20


def test_pieces_may_be_fed_before_messages_are_read() -> None:
    decoder = Decoder()
    for octet in bytes.fromhex("0401010501"):
        decoder.feed(bytes((octet,)))
    assert [decoder.next(), decoder.next()] == [Message(Type.REQUEST, 1, 1), Message(Type.CANCEL, 1)]
    assert decoder.next() is None


@pytest.mark.parametrize(("invalid", "error"), [(b"\7\1\xff\xff\3", "LimitExceeded"), (b"\7\1\x80\0", "FrameError")])
@pytest.mark.parametrize("count", [1, 2])
def test_elements_before_an_invalid_one_are_returned(build: Build, invalid: bytes, error: str, count: int) -> None:
    decoder = build.module("weirpool.wire.reactivestreams.decoder").Decoder(max_element_bytes=10)
    decoder.feed(b"\7\1\1x" * count + invalid)
    found = decoder.next()
    items = [found.data] if count == 1 else [item.data for item in found.run.payloads()]
    assert items == [b"x"] * count
    with pytest.raises(getattr(build.module("weirpool.errors"), error)):
        decoder.next()
