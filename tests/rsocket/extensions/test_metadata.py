from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "rsocket-1.0-extensions.json").read_text())
COMPOSITE = [
    vector for vector in VECTORS if "composite" in vector["meaning"] or "route 'r' + auth" in vector["meaning"]
]
ROUTES = {
    "fe00000d0c7368656c6c2d636c69656e74": "shell-client",
    "fe00000c0b7461726765742e70617468": "target.path",
    "fe00000401610162": "a",
    "fe0000020172": "r",
}


@pytest.mark.parametrize("vector", COMPOSITE, ids=lambda vector: vector["meaning"][:40])
def test_vectors_round_trip(build, vector) -> None:
    metadata = build.module("weirpool.rsocket.extensions.metadata")
    data = bytes.fromhex(vector["hex"])
    entries = metadata.entries(data)
    assert entries
    # A MIME type that has a number is written as the number, even if it was sent as a name.
    again = metadata.composite(entries)
    assert metadata.entries(again) == entries
    if b"message/" not in data:
        assert again == data


@pytest.mark.parametrize("vector", COMPOSITE, ids=lambda vector: vector["meaning"][:40])
def test_routes_of_vectors(build, vector) -> None:
    router = build.module("weirpool.rsocket.extensions.metadata").Router()
    wanted = next((route for head, route in ROUTES.items() if vector["hex"].startswith(head)), "")
    for _ in range(2):
        assert router.route(bytes.fromhex(vector["hex"])) == wanted


@given(st.lists(st.tuples(st.sampled_from(["application/json", "x/y", "a"]), st.binary(max_size=40)), max_size=6))
def test_composite_metadata_round_trips(builds, parts) -> None:
    for build in builds.values():
        metadata = build.module("weirpool.rsocket.extensions.metadata")
        assert metadata.entries(metadata.composite(parts)) == parts


@given(st.binary(max_size=60))
def test_junk_is_only_an_error(builds, junk) -> None:
    for build in builds.values():
        metadata = build.module("weirpool.rsocket.extensions.metadata")
        for read in (metadata.entries, metadata.route_tags):
            try:
                read(junk)
            except build.module("weirpool.errors").FrameError as error:
                assert 0 <= error.offset <= len(junk)


def test_route_is_added_to_other_metadata(build) -> None:
    module = build.module("weirpool.rsocket.extensions.metadata")
    router = module.Router()
    data = router.metadata("some.route", b"extra")
    assert module.entries(data)[1] == ("application/octet-stream", b"extra")
    assert router.route(data) == "some.route"
    assert router.metadata("", b"raw") == b"raw"
    assert router.route(None) == ""


@pytest.mark.parametrize("mime", ["message/x.rsocket.routing.v0", "text/plain"])
def test_other_metadata_types_contain_only_the_route(build, mime) -> None:
    router = build.module("weirpool.rsocket.extensions.metadata").Router(mime)
    assert router.route(router.metadata("a.b", None)) == "a.b"
    with pytest.raises(build.module("weirpool.errors").LocalError):
        router.metadata("a.b", b"more")


def test_values_out_of_range_are_refused(build) -> None:
    metadata, error = build.module("weirpool.rsocket.extensions.metadata"), build.module("weirpool.errors").LocalError
    with pytest.raises(error, match="255"):
        metadata.routing("x" * 256)
    with pytest.raises(error, match="ASCII"):
        metadata.composite([("tëxt/plain", b"")])
    with pytest.raises(build.module("weirpool.errors").FrameError, match="more than 3"):
        metadata.entries(b"\x86\0\0\0" * 4, limit=3)


def kept(router, metadata: bytes) -> bool:
    """Return whether a router keeps the metadata of a request."""
    before = sys.getrefcount(metadata)
    router.route(metadata)
    return sys.getrefcount(metadata) > before


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("composite-metadata", b"\xfe\0\0\x04\x03a.b\xfc\0\0\x07\x81secret"),
        ("composite-metadata", b"\xfe\0\0\x0b\x03a.b\x06secret"),
        ("composite-metadata", b"\xfe\0\0\x07\x06" + b"\xff" * 6),
        ("routing", b"\x03a.b\x06secret"),
    ],
)
def test_only_metadata_without_secrets_is_cached(build, name: str, secret: bytes) -> None:
    # THREATS 103
    router = build.module("weirpool.rsocket.extensions.metadata").Router(f"message/x.rsocket.{name}.v0")
    assert kept(router, router.metadata("a.b", None))
    assert not kept(router, secret)


def test_routes_in_text_are_not_cached(build) -> None:
    # THREATS 103
    assert not kept(build.module("weirpool.rsocket.extensions.metadata").Router("text/plain"), b"secret")
