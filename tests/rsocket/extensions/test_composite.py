from __future__ import annotations

import copy
import json
import pickle
import sys
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weirpool
from weirpool import (
    ApplicationError,
    Bearer,
    Custom,
    FrameError,
    LocalError,
    Metadata,
    Payload,
    Service,
    Simple,
    TraceContext,
)
from weirpool.rsocket.extensions import composite, tracing
from weirpool.rsocket.extensions.composite import Entry, mime_of
from weirpool.rsocket.extensions.metadata import Router, route_tags, routing
from weirpool.rsocket.extensions.mimes import ACCEPT, AUTHENTICATION, MIME_TYPE, NAMES, ROUTING, TRACING, LiteralMime

FILE = Path(__file__).parents[2] / "vectors" / "rsocket-1.0-extensions.json"
VECTORS = {vector["hex"]: vector["meaning"] for vector in json.loads(FILE.read_text())}
JSON, CUSTOM = "application/json", "x/y"
LITERAL = LiteralMime(AUTHENTICATION)
# The meanings: the arguments, and the decoded fields.
COMPOSITE = {
    "fe00000d0c7368656c6c2d636c69656e74226d6573736167652f782e72736f636b65742e61757468656e7469636174696f6e2e7630"
    "00000b8000047573657270617373": (
        Metadata("shell-client", entries=[(LITERAL, b"\x80\0\x04userpass")]),
        {"tags": ("shell-client",), "auth": Simple("user", "pass")},
    ),
    "fe00000c0b7461726765742e70617468": (Metadata("target.path"), {"tags": ("target.path",)}),
    "fe00000401610162": (Metadata(tags=["a", "b"]), {"tags": ("a", "b")}),
    "fc00000b8000047573657270617373": (Metadata(auth=Simple("user", "pass")), {"auth": Simple("user", "pass")}),
    "fa00000185": (Metadata(mime=JSON), {"mime": JSON}),
    "fa00000402782f79": (Metadata(mime=CUSTOM), {"mime": CUSTOM}),
    "fb0000058502782f79": (Metadata(accept=[JSON, CUSTOM]), {"accept": (JSON, CUSTOM)}),
    "02782f7900000163": (Metadata(entries=[(CUSTOM, b"c")]), {}),
    "fe0000020172fc0000058000017570fa00000185": (
        Metadata("r", auth=Simple("u", "p"), mime=JSON),
        {"tags": ("r",), "auth": Simple("u", "p"), "mime": JSON},
    ),
    "fe00000c0b7461726765742e70617468fc00000681746f6b656e02782f7900000163": (
        Metadata("target.path", auth=Bearer("token"), entries=[(CUSTOM, b"c")]),
        {"tags": ("target.path",), "auth": Bearer("token")},
    ),
}
BARE_ROUTING = {"0b7461726765742e70617468": ("target.path",), "01610162": ("a", "b")}
BARE_TRACING = {"a4000000000000000100000000000000020000000000000003": TraceContext(1, 2, 3, sampled=True)}
NOTHING = {"tags": (), "auth": None, "mime": None, "accept": (), "trace": None}

ASCII = st.text(st.characters(max_codepoint=127), min_size=1, max_size=128)
UNKNOWN = sorted(set(range(128)) - set(NAMES))
MIMES = ASCII | st.sampled_from([JSON, "text/plain"]) | st.sampled_from(UNKNOWN)
AUTHS = (
    st.builds(Simple, st.text(max_size=20), st.text(max_size=20))
    | st.builds(Bearer, st.text(max_size=20))
    | st.builds(Custom, st.integers(2, 127) | ASCII, st.binary(max_size=20))
)
TRACES = st.builds(TraceContext, sampled=st.sampled_from([None, True, False])) | st.builds(
    TraceContext, st.integers(0, 2**128 - 1), st.integers(0, 2**64 - 1), st.none() | st.integers(0, 2**64 - 1)
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(st.text(max_size=20), min_size=1, max_size=4),
        "auth": AUTHS,
        "mime": MIMES,
        "accept": st.lists(MIMES, min_size=1, max_size=4),
        "trace": TRACES,
    },
)


def shown(metadata: Metadata) -> dict[str, object]:
    return {name: getattr(metadata, name) for name in NOTHING}


def test_every_vector_is_tested() -> None:
    assert {*COMPOSITE, *BARE_ROUTING, *BARE_TRACING} == set(VECTORS)


@pytest.mark.parametrize("raw", COMPOSITE, ids=lambda raw: VECTORS[raw][:40])
def test_vectors_of_composite_metadata(raw: str) -> None:
    made, attributes = COMPOSITE[raw]
    read = Metadata.decode(bytes.fromhex(raw))
    assert read == made
    assert shown(read) == shown(made) == NOTHING | attributes
    assert read.encode().hex() == made.encode().hex() == raw


@pytest.mark.parametrize("raw", BARE_ROUTING)
def test_vectors_of_routing(raw: str) -> None:
    tags = BARE_ROUTING[raw]
    assert tuple(route_tags(bytes.fromhex(raw))) == tags
    assert routing(*tags).hex() == raw


@pytest.mark.parametrize("raw", BARE_TRACING)
def test_vectors_of_tracing(raw: str) -> None:
    trace = BARE_TRACING[raw]
    assert tracing.decode(bytes.fromhex(raw)) == trace
    assert tracing.encode(trace).hex() == raw


def test_entries_have_the_order_of_the_arguments() -> None:
    metadata = Metadata(
        "quotes.latest",
        auth=Bearer("t"),
        mime=JSON,
        accept=("text/plain", CUSTOM),
        trace=TraceContext(1, 2, sampled=False),
        entries=[(CUSTOM, b"c"), (0x30, b""), (JSON, b"{}"), (CUSTOM, b"d")],
    )
    raw = metadata.encode()
    assert raw.hex() == (
        "fe00000e0d" + b"quotes.latest".hex() + "fc0000028174" + "fa00000185" + "fb000005a102782f79"
        "fd000011" + "90" + "0" * 15 + "1" + "0" * 15 + "2" + "02782f7900000163" + "b0000000" + "850000027b7d"
        "02782f7900000164"
    )
    read = Metadata.decode(raw)
    assert [entry.mime for entry in read.entries] == [
        ROUTING, AUTHENTICATION, MIME_TYPE, ACCEPT, TRACING, CUSTOM, 0x30, JSON, CUSTOM,
    ]  # fmt: skip
    assert (read.route, read.auth, read.mime) == ("quotes.latest", Bearer("t"), JSON)
    assert (read.accept, read.trace) == (("text/plain", CUSTOM), TraceContext(1, 2, sampled=False))
    assert [content for mime, content in read.entries if mime == CUSTOM] == [b"c", b"d"]


@given(PARTS, st.lists(st.tuples(MIMES, st.binary(max_size=20)), max_size=4))
def test_encoded_values_are_decoded(parts: dict[str, object], entries: list[tuple[str | int, bytes]]) -> None:
    made = Metadata(**parts, entries=entries)  # type: ignore[arg-type]
    read = Metadata.decode(made.encode())
    assert read == made
    assert hash(read) == hash(made)
    wanted = {name: tuple(value) if isinstance(value, list) else value for name, value in parts.items()}
    assert shown(read) == shown(made) == NOTHING | wanted
    assert read.entries[len(parts) :] == tuple(entries)
    assert Router().route(made.encode()) == read.route


@given(st.binary(max_size=80) | st.lists(st.tuples(MIMES, st.binary(max_size=8))).map(lambda e: made_of(e)))
def test_junk_is_an_error_or_round_trips(junk: bytes) -> None:
    try:
        metadata = Metadata.decode(junk)
    except FrameError as error:
        assert 0 <= error.offset <= len(junk)
        return
    assert metadata.encode() == junk
    assert Router().route(junk) == metadata.route


def made_of(entries: list[tuple[str | int, bytes]]) -> bytes:
    return Metadata(entries=entries).encode()


@given(PARTS, st.data())
def test_truncated_metadata_is_an_error_or_shorter(parts: dict[str, object], data: st.DataObject) -> None:
    raw = Metadata(**parts).encode()  # type: ignore[arg-type]
    cut = raw[: data.draw(st.integers(0, len(raw)))]
    try:
        assert Metadata.decode(cut).encode() == cut
    except FrameError:
        pass


def test_empty_metadata_has_no_entries() -> None:
    assert Metadata.decode(None) == Metadata.decode(b"") == Metadata()
    assert shown(Metadata()) == NOTHING
    assert Metadata().encode() == b""
    assert Metadata().route == ""
    assert Metadata() != b""


def test_first_entry_of_a_type_sets_the_attribute() -> None:
    metadata = Metadata(
        tags=["a", "b"],
        auth=Bearer("first"),
        entries=[(ROUTING, b"\x01c"), (LiteralMime(AUTHENTICATION), b"\x81second")],
    )
    read = Metadata.decode(metadata.encode())
    assert (read.route, read.tags, read.auth) == ("a", ("a", "b"), Bearer("first"))
    assert [entry.content for entry in read.entries] == [b"\x01a\x01b", b"\x81first", b"\x01c", b"\x81second"]


def test_numbers_of_named_types_become_names() -> None:
    metadata = Metadata(entries=[(0x05, b"{}"), (0x7E, b"\x01r")])
    assert metadata.entries == ((JSON, b"{}"), (ROUTING, b"\x01r"))
    assert metadata.route == "r"


def test_name_that_is_not_ascii_round_trips() -> None:
    raw = b"\x02\xff/y\0\0\x01c"
    read = Metadata.decode(raw)
    assert len(read.entries) == 1
    assert read.encode() == raw
    assert repr(read).isascii()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("fe", "byte 1: composite metadata ends within an entry's length"),
        ("fe0000", "byte 1: composite metadata ends within an entry's length"),
        ("fe00000401", "byte 1: an entry of 4 bytes runs past"),
        ("feffffff", "byte 1: an entry of 16777215 bytes runs past"),
        ("7f61", "byte 0: MIME type of 128 bytes runs past"),
        ("85000000fe0000020561", "byte 8: entry 1, message/x.rsocket.routing.v0: a routing tag of 5 bytes"),
        ("85000000fc000000", "byte 8: entry 1, .*: the authentication type is missing"),
        ("fc000003800005", "byte 5: entry 0, .*: a username of 5 bytes"),
        ("fa0000028585", "byte 5: entry 0, .*: 1 bytes follow"),
        ("fb0000028502", "byte 5: entry 0, .*: MIME type of 3 bytes"),
        ("fd00000180", "byte 4: entry 0, .*: tracing metadata has 1 bytes"),
    ],
)
def test_invalid_lengths_are_reported_with_their_offset(raw: str, message: str) -> None:
    # THREATS 21.
    with pytest.raises(FrameError, match=f"^{message}"):
        Metadata.decode(bytes.fromhex(raw))


def test_number_of_entries_tags_and_mime_types_is_limited() -> None:
    # THREATS 21.
    with pytest.raises(FrameError, match="byte 1024: composite metadata has more than 256 entries"):
        Metadata.decode(b"\x86\0\0\0" * 1_000_000)
    with pytest.raises(FrameError, match="byte 8: composite metadata has more than 2 entries"):
        Metadata.decode(b"\x86\0\0\0" * 3, limit=2)
    assert len(Metadata.decode(b"\x86\0\0\0" * 3, limit=3).entries) == 3
    many = (1_000_000).to_bytes(3, "big")
    with pytest.raises(FrameError, match="more than 256 tags"):
        Metadata.decode(b"\xfe" + many + bytes(1_000_000))
    with pytest.raises(FrameError, match="MIME types has more than 256"):
        Metadata.decode(b"\xfb" + many + b"\x85" * 1_000_000)


def test_values_out_of_range_are_refused() -> None:
    with pytest.raises(LocalError, match="255"):
        Metadata("r" * 256)
    with pytest.raises(LocalError, match="as the first tag"):
        Metadata("a", tags=["b"])
    with pytest.raises(LocalError, match="token"):
        Metadata(auth=Bearer("\ud800"))
    with pytest.raises(LocalError, match="MIME type"):
        Metadata(mime="é")
    with pytest.raises(LocalError, match="MIME type"):
        Metadata(entries=[("", b"")]).encode()
    with pytest.raises(LocalError, match="longer than 16777215 bytes"):
        Metadata(entries=[(CUSTOM, bytes(1 << 24))]).encode()
    with pytest.raises(LocalError, match=r"entry 1, .*routing.v0: byte 0: a routing tag of 9 bytes"):
        Metadata(entries=[(CUSTOM, b""), (ROUTING, b"\x09")])


def test_secrets_are_not_shown() -> None:
    for auth in (Simple("user", "s3cret"), Bearer("s3cret"), Custom("t", b"s3cret")):
        metadata = Metadata("r", auth=auth)
        assert "s3cret" not in f"{metadata!r} {metadata} {metadata.entries}"
    secret = "s3cret"
    raw = b"\xfc\0\0\x08\x81" + secret.encode() + b"\xff"
    with pytest.raises(FrameError, match=r"byte 11: entry 0, .*: the token is not valid UTF-8") as caught:
        Metadata.decode(raw)
    assert secret not in "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))


def test_repr_shows_the_fields() -> None:
    metadata = Metadata("r", auth=Simple("u", "p"), entries=[(0x30, b"xyz")])
    assert repr(metadata) == (
        "Metadata(tags=('r',), auth=Simple(username='u'), entries=(Entry('message/x.rsocket.routing.v0', <2 bytes>), "
        "Entry('message/x.rsocket.authentication.v0', <5 bytes>), Entry(48, <3 bytes>)))"
    )
    assert repr(Metadata()) == "Metadata()"
    assert tuple(Entry(CUSTOM, b"c")) == (CUSTOM, b"c")


def test_metadata_can_be_copied_and_pickled() -> None:
    metadata = Metadata.decode(bytes.fromhex(next(iter(COMPOSITE))))
    for again in (pickle.loads(pickle.dumps(metadata)), copy.deepcopy(metadata)):
        assert again.encode() == metadata.encode()
        assert shown(again) == shown(metadata)


async def test_handler_reads_the_metadata_of_a_peer() -> None:
    service = Service()
    seen: list[bytes | None] = []

    @service.call("whoami")
    def whoami(request: Payload) -> str:
        seen.append(request.metadata)
        return repr(Metadata.decode(request.metadata).auth)

    @service.stream("whoami")
    def names(request: Payload) -> list[bytes]:
        seen.append(request.metadata)
        return [tag.encode() for tag in Metadata.decode(request.metadata).tags]

    metadata = Metadata(tags=["whoami", "again"], auth=Simple("zoë", ""), trace=TraceContext(1, 2)).encode()
    async with (
        weirpool.serve(service, "rsocket+memory://composite") as server,
        weirpool.connect(server.urls[0]) as peer,
    ):
        # The route is in the metadata, so no other one is added.
        assert await peer.call("", b"", metadata=metadata) == Payload("Simple(username='zoë')")
        async with peer.stream("", b"", metadata=metadata) as items:
            assert [item.data async for item in items] == [b"whoami", b"again"]
        assert await peer.call("whoami") == Payload("None")
        assert seen == [metadata, metadata, Metadata("whoami").encode()]
        # Malformed metadata fails only its request.
        broken = Metadata("whoami").encode() + b"\xfc\0\0\x01\x80"
        with pytest.raises(ApplicationError):
            await peer.call("", b"", metadata=broken)
        assert await peer.call("whoami") == Payload("None")


def test_mime_type_of_a_request_is_found() -> None:
    assert mime_of(b"") is None
    assert mime_of(Metadata("r").encode()) is None
    assert mime_of(Metadata("r", mime="text/plain").encode()) == "text/plain"
    assert mime_of(Metadata("r", mime=0x70).encode()) == "0x70"
    assert mime_of(Metadata("r" * 200, mime="x/y", entries=[("x/z", b"z" * 200)]).encode()) == "x/y"
    with pytest.raises(FrameError):
        mime_of(b"\x01")


@pytest.mark.parametrize(
    ("metadata", "cached"),
    [
        (Metadata("kept", mime="text/plain"), True),
        (Metadata("kept", mime="text/plain", accept=["x/y"]), True),
        (Metadata("kept", mime="text/plain", auth=Bearer("secret")), False),
        (Metadata("kept", mime="text/plain", trace=TraceContext(1, 2)), False),
        (Metadata("kept", entries=[("x/y", b"secret")]), False),
        (Metadata(tags=["kept", "secret"]), False),
    ],
    ids=repr,
)
def test_only_metadata_without_secrets_is_cached(metadata: Metadata, cached: bool) -> None:
    # THREATS 103
    encoded = metadata.encode()
    before = sys.getrefcount(encoded)
    assert mime_of(encoded) == mime_of(encoded) == metadata.mime
    assert (sys.getrefcount(encoded) > before) is cached


def test_cache_of_mime_types_is_bounded() -> None:
    # THREATS 103: a stranger invents routes.
    for number in range(3_000):
        assert mime_of(Metadata(f"bounded {number}", mime="x/y").encode()) == "x/y"
    assert len(composite._cached_mimes) <= composite.CACHED_MIMES
