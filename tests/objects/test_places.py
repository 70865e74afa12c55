from __future__ import annotations

from pathlib import Path

import pytest

from weirpool.errors import LocalError
from weirpool.objects.places import parse_place


def test_paths_are_folders(tmp_path: Path) -> None:
    for text in (str(tmp_path), f"file://{tmp_path}"):
        place = parse_place(text)
        assert (place.scheme, place.path, place.uri, place.is_remote) == ("file", str(tmp_path), str(tmp_path), False)
    assert parse_place("data").path == str(Path("data").absolute())
    for text in ("file:///a%20b", "file://localhost/a b"):
        assert parse_place(text).path == "/a b"
    # In a URI of a folder they have no meaning, so they do not cut it off.
    assert parse_place("file:///a?b#c").path == "/a?b#c"


@pytest.mark.parametrize(
    ("uri", "scheme", "bucket", "prefix"),
    [
        ("s3://b", "s3", "b", ""),
        ("s3a://b/x/y/", "s3", "b", "x/y"),
        ("gs://b/x", "gs", "b", "x"),
        ("az://account/container/x", "az", "account", "container/x"),
        ("memory://m", "memory", "m", ""),
    ],
)
def test_object_stores_have_buckets(uri: str, scheme: str, bucket: str, prefix: str) -> None:
    place = parse_place(uri)
    assert place.is_remote
    assert (place.scheme, place.bucket, place.prefix, place.uri) == (scheme, bucket, prefix, uri)


def test_options_are_in_the_query() -> None:
    place = parse_place("s3://b/x?endpoint=http://127.0.0.1:9000&region=eu&allow_http=true")
    assert place.options == {"endpoint": "http://127.0.0.1:9000", "region": "eu", "allow_http": "true"}


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("s3://key:secret@b/x", "credentials"),
        ("s3://b?secret_access_key=hidden", "unknown option"),
        ("s3:///x", "names no bucket"),
        ("s3://b?allow_http=maybe", "true or false"),
        ("s3://b/x#y?endpoint=http://127.0.0.1:9", "contains the character #; write it as %23"),
        ("s3://key:secret@b/x#y", "credentials"),
        ("file://host/x", "not that of a folder of this machine"),
    ],
)
def test_wrong_uris_are_refused(uri: str, message: str) -> None:
    with pytest.raises(LocalError, match=message) as caught:
        parse_place(uri)
    assert "hidden" not in str(caught.value) and "key:secret" not in str(caught.value)
