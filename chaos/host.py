"""Serves the journal, or seals it, until it is stopped: ``python -m chaos.host READS FOLDER URL``.

READS is described in `chaos.world`. The URL is where to serve.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from weirpool.archive import Sealer, SealingThread, SealOptions
from weirpool.serving.host import Host, Listening

from .children import listen

__all__ = ["JOURNAL"]

JOURNAL: Final = "journal"
"""The name of the folder, and of the journal that is served."""
INTERVAL: Final = 0.5
"""Seconds between two looks for what can be sealed."""
AT_ONCE: Final = SealOptions(target_bytes=1, max_age=1.0)
"""A complete segment is sealed at once, and goes: Spark reads the rows from the sealed file."""


async def main(reads: str, folder: Path, url: str) -> None:
    """Serve or seal until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as stack:
        if reads == "served":
            await stack.enter_async_context(Host({JOURNAL: str(folder)}, Listening(urls=(url,))))
        if reads == "sealed":
            thread = SealingThread(Sealer(folder, AT_ONCE), INTERVAL)
            stack.callback(thread.join)
            stack.callback(thread.stop)
        listen()
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
