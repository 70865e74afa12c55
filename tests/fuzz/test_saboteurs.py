"""Guards of decoders that are removed from one of two copies of the plain build: the fuzzer must notice each.

Independent decoders must notice some of them without the other copy.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from fuzz.engine import Engine
from fuzz.targets import Difference, load

from tests.builds import Build

SECONDS = 30.0


def unlimited_length(build: Build) -> None:
    decoder = build.module("weirpool.wire.reactivestreams.decoder").Decoder
    decoder._length = lambda self, limit, what: self._varint(what)


def any_frame_size(build: Build) -> None:
    framing = build.module("weirpool.wire.framing")
    framing.Deframer.__init__ = patched(framing.Deframer.__init__, min_frame_bytes=0)


def unmasked_frames(build: Build) -> None:
    build.module("weirpool.transports.websocket_frames").MASKED = 0


def one_tag_of_a_route(build: Build) -> None:
    metadata = build.module("weirpool.rsocket.extensions.metadata")
    tags = metadata.route_tags
    metadata.route_tags = lambda content: tags(content[: 1 + content[0]] if content else b"")


def unchecked_msgpack(build: Build) -> None:
    build.module("weirpool.wire.river.codec").CODECS["msgpack"].received = lambda body, levels=0: body


def shallow_json(build: Build) -> None:
    build.module("weirpool.depth").json_too_deep = lambda data, limit=128: -1


def negative_rows(build: Build) -> None:
    build.module("weirpool.wire.rows")._slice = lambda data, ends, row: bytes(data[ends[row] : ends[row + 1]])


def endless_credit(build: Build) -> None:
    inbound = build.module("weirpool.core.streams").Stream
    whole = inbound.end
    inbound.end = lambda self, signal, from_us: whole(self, signal, not from_us)


def last_header_only(build: Build) -> None:
    forwarded = build.module("weirpool.transports.forwarded")
    whole = forwarded.client_address
    forwarded.client_address = lambda peer, lines, others, trusted: whole(peer, lines[-1:], others[-1:], trusted)


def any_request(build: Build) -> None:
    build.module("weirpool.transports.http2").ServerConnection._error_status = lambda self, headers: 0


def any_index(build: Build) -> None:
    build.module("weirpool.decoding.avro_values").Cursor._index = lambda self, count: self._number() % count


def rounded_times(build: Build) -> None:
    for name in ("json", "msgpack"):
        build.module(f"weirpool.values.{name}").has_finer_time = lambda data: False
    for name in ("msgpack", "cbor"):
        build.module(f"weirpool.values.{name}").contains = lambda words, data: False


def open_decimals(build: Build) -> None:
    build.module("weirpool.values.json")._number = lambda value: value


def any_end(build: Build) -> None:
    build.module("weirpool.depth").skip_cbor = lambda data, at: len(data)


def quotes_only(build: Build) -> None:
    build.module("weirpool.reflection.commands").shell_word = shlex.quote


def first_events_only(build: Build) -> None:
    build.module("weirpool.recording.replaying")._count = lambda interaction, event, offset: None


def patched(function: Callable[..., None], **forced: Any) -> Callable[..., None]:
    """Return a function with some keyword arguments replaced."""
    return lambda *arguments, **options: function(*arguments, **{**options, **forced})


SABOTEURS: dict[str, Callable[[Build], None]] = {
    "reactivestreams": unlimited_length,
    "framing": any_frame_size,
    "websocket": unmasked_frames,
    "metadata": one_tag_of_a_route,
    "river": unchecked_msgpack,
    "depth": shallow_json,
    "rows": negative_rows,
    "sessions": endless_credit,
    "proxies": last_header_only,
    "requests": any_request,
    "avro": any_index,
    "values": rounded_times,
    "cbor": any_end,
    "descriptions": quotes_only,
    "recordings": first_events_only,
}
JUDGED: dict[str, Callable[[Build], None]] = {
    "depth": shallow_json,
    "metadata": one_tag_of_a_route,
    "proxies": last_header_only,
    "requests": any_request,
    "values": open_decimals,
}


@pytest.mark.parametrize("name", SABOTEURS)
def test_missing_guard_is_found(name: str) -> None:
    builds = {copy: Build(copy, own_copy=True) for copy in ("intact", "sabotaged")}
    target = load(name, builds)
    SABOTEURS[name](builds["sabotaged"])
    engine = Engine(target, [], Random(1))
    with pytest.raises(Difference, match="the builds disagree"):
        engine.add(target.seeds())
        engine.corpus = list(target.seeds())
        engine.fuzz(SECONDS)


@pytest.mark.parametrize("name", JUDGED)
def test_independent_decoder_notices_a_missing_guard(name: str) -> None:
    build = Build("sabotaged", own_copy=True)
    target = load(name, {"sabotaged": build})
    JUDGED[name](build)
    engine = Engine(target, [], Random(1))
    with pytest.raises(Difference) as caught:
        engine.add(target.seeds())
        engine.corpus = list(target.seeds())
        engine.fuzz(SECONDS)
    assert "the builds disagree" not in str(caught.value)
