"""Output that no link delivers."""

from __future__ import annotations

import pytest

from weirpool.core.link_losses import LinkLosses


@pytest.mark.parametrize(("moved", "size", "links"), [(True, 4_096, 8), (True, 4_095, 128), (False, 4_096, 128)])
def test_links_without_progress_are_too_many(moved: bool, size: int, links: int) -> None:
    # THREATS 91
    losses = LinkLosses(1.0, 20.0)
    for link in range(1, links + 1):
        losses.linked(float(link))
        losses.deliver(0)
        if moved:
            losses.progressed(float(link))
        losses.lost(link + 0.5, size)
        assert losses.too_many == (link == links)
    losses.deliver(1)
    assert not losses.too_many


def test_links_that_lasted_do_not_count_without_a_large_frame() -> None:
    losses = LinkLosses(1.0, 20.0)
    for link in range(0, 2_000, 2):
        losses.linked(float(link))
        losses.progressed(float(link))
        losses.lost(link + 1.0, 4_095)
    assert not losses.too_many
