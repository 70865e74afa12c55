from __future__ import annotations

import pytest

from weirpool import Invalid, Metadata, Payload, Simple
from weirpool.dedup.keys import row_of
from weirpool.dedup.progress import Row

KEY = b'{"query":"q","batch":1,"partition":2,"index":3}'


def test_rows_are_known_by_their_metadata() -> None:
    assert row_of(Payload(b"x", KEY), is_request=False) == Row("q", 1, 2, 3)


def test_metadata_of_a_request_is_beside_its_route() -> None:
    entries = [("application/octet-stream", KEY)]
    around = Metadata("route", auth=Simple("ada", "x"), entries=entries).encode()
    assert row_of(Payload(b"x", around), is_request=True) == Row("q", 1, 2, 3)
    # Protocols without composite metadata.
    assert row_of(Payload(b"x", KEY), is_request=True) == Row("q", 1, 2, 3)


LONG = b'{"query":"%s","batch":1,"partition":2,"index":3}' % (b"q" * 129)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        b"",
        b"junk",
        b"{}",
        LONG,
        KEY.replace(b'"q"', b'"\\u0000"'),
        KEY.replace(b"1", b"-1"),
        KEY.replace(b"2", b"4294967296"),
        KEY.replace(b"3", b"1" * 30),
    ],
)
def test_other_items_are_refused(metadata: bytes | None) -> None:
    for is_request in (False, True):
        with pytest.raises(Invalid, match="Deduplicated"):
            row_of(Payload(b"x", metadata), is_request=is_request)
