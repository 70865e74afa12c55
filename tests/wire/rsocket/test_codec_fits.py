from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire
from tests.wire.strategies import items


@given(items=items, most=st.integers(-1, 45), data=st.data())
def test_fits_counts_items_before_the_first_long_one(
    wire: Wire, items: list[tuple[bytes, bytes | None]], most: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(items)))
    stop = data.draw(st.integers(start, len(items)))
    expected = 0
    for raw, metadata in items[start:stop]:
        if len(raw) + len(metadata or b"") > most:
            break
        expected += 1
    assert wire.v1.fits(wire.run(items), start, stop, most) == expected


def test_fits_counts_only_existing_items(wire: Wire) -> None:
    run = wire.run([(b"d", None)])
    assert wire.v1.fits(run, 0, 100, 10) == 1
    assert wire.v1.fits(run, 5, 100, 10) == 0
