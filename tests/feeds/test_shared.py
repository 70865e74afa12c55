from __future__ import annotations

from pathlib import Path

from weirpool.feeds.shared import SMALLEST_WINDOW_BYTES, WINDOWS_BYTES, Shared
from weirpool.journal.progress import WINDOW_BYTES


async def test_feeds_of_a_journal_share_a_committer(tmp_path: Path) -> None:
    shared = Shared()
    one = shared.committer(str(tmp_path / "one"))
    assert shared.committer(str(tmp_path / "one")) is one
    assert shared.committer(str(tmp_path / "two")) is not one
    await shared.close()
    assert shared.committer(str(tmp_path / "one")) is not one
    await shared.close()


def test_many_feeds_have_smaller_windows() -> None:
    shared = Shared()
    assert shared.window_bytes() == WINDOW_BYTES
    shared.feeds = 100
    assert shared.window_bytes() == WINDOWS_BYTES // 100
    shared.feeds = 1_000_000
    assert shared.window_bytes() == SMALLEST_WINDOW_BYTES
