from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builds import Build

NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 2**53 - 1), st.sampled_from([127, 128, 65535, 65536, 2**32]))
CODECS = ("json", "msgpack")


def writer(build: Build, codec: str, us: str = 'cli"ent', peer: str = "SERVER") -> Any:
    known = build.module("weirpool.wire.river.codec").CODECS[codec]
    return build.module("weirpool.wire.river.writing").Writer(known, us, peer, "0123456789ab-s")


@pytest.mark.parametrize("codec", CODECS)
@given(
    seq=NUMBERS,
    ack=NUMBERS,
    name=st.text(max_size=40),
    flags=st.integers(0, 15),
    wrap_ok=st.booleans(),
    route=st.sampled_from([None, "a.b", "é.ü", "one.two.three"]),
    tracing=st.none() | st.just({"traceparent": "x", "tracestate": ""}),
)
def test_written_messages_are_read(
    builds: dict[str, Build],
    codec: str,
    seq: int,
    ack: int,
    name: str,
    flags: int,
    wrap_ok: bool,
    route: str | None,
    tracing: Any,
) -> None:
    value = {"n": [1, None, "x"]}
    written = []
    for build in builds.values():
        known = build.module("weirpool.wire.river.codec").CODECS[codec]
        ours = writer(build, codec)
        data = ours.message(seq, ack, known.encoded(name), flags, known.encoded(value), wrap_ok, route, tracing)
        written.append(data)
        assert int.from_bytes(data[:4], "big") == len(data) - 4
        message = known.decode(data[4:])
        assert (message.seq, message.ack, message.stream_id, message.control_flags) == (seq, ack, name, flags)
        assert (message.id, message.from_, message.to) == ("0123456789ab-s1", 'cli"ent', "SERVER")
        service, _, procedure = (route or "").rpartition(".")
        assert (message.service_name, message.procedure_name) == (service or None, procedure or None)
        assert message.tracing == tracing
        body = json.loads(message.payload) if codec == "json" else msgspec.msgpack.decode(message.payload)
        assert body == ({"ok": True, "payload": value} if wrap_ok else value)
    assert len(set(written)) == 1


@pytest.mark.parametrize("codec", CODECS)
def test_ids_are_unique(build: Build, codec: str) -> None:
    ours = writer(build, codec)
    known = build.module("weirpool.wire.river.codec").CODECS[codec]
    ids = [ours.new_id() for _ in range(20)]
    messages = [known.decode(ours.message(0, 0, known.encoded("s"), 0, known.null)[4:]) for _ in range(300)]
    assert len({*ids, *(message.id for message in messages)}) == 320


@pytest.mark.parametrize("codec", CODECS)
def test_number_of_cached_routes_is_limited(build: Build, codec: str) -> None:
    ours = writer(build, codec)
    known = build.module("weirpool.wire.river.codec").CODECS[codec]
    for number in range(3_000):
        data = ours.message(0, 0, known.encoded("s"), 0, known.null, False, f"service.p{number}")
        assert known.decode(data[4:]).procedure_name == f"p{number}"


@pytest.mark.parametrize("codec", CODECS)
def test_unencodable_values_are_refused(build: Build, codec: str) -> None:
    error = build.module("weirpool.errors").LocalError
    known = build.module("weirpool.wire.river.codec").CODECS[codec]
    with pytest.raises(error, match="cannot be encoded"):
        writer(build, codec, us="\ud800")
    with pytest.raises(error, match="cannot be encoded"):
        writer(build, codec).message(0, 0, known.encoded("s"), 0, known.null, False, "a.\ud800")


@pytest.mark.parametrize("codec", CODECS)
def test_missing_bytes_are_refused(build: Build, codec: str) -> None:
    known = build.module("weirpool.wire.river.codec").CODECS[codec]
    for name, body in ((None, b"1"), (known.encoded("s"), None)):
        with pytest.raises(TypeError):
            writer(build, codec).message(0, 0, name, 0, body)
