"""Some collectors in one process, to be killed: ``python -m tests.chaos.collecting_together URL JOURNAL SOURCE...``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import weirpool
from weirpool.journal.collect import Collector
from weirpool.journal.committer import Committer


async def main(url: str, journal: Path, sources: list[str]) -> None:
    committer = Committer(journal)
    feeds = [
        Collector(url, "numbers", journal, source=each, data=each.encode(), linger=0.01, committer=committer)
        for each in sources
    ]
    await asyncio.gather(*(feed.run() for feed in feeds))
    await committer.close()


if __name__ == "__main__":
    url, journal, *sources = sys.argv[1:]
    weirpool.run(main(url, Path(journal), sources))
