"""A collector in a process of its own, to be killed: ``python -m tests.chaos.collecting URL ROUTE JOURNAL``."""

from __future__ import annotations

import asyncio
import sys

from penstock.journal.collect import Collector

if __name__ == "__main__":
    asyncio.run(Collector(*sys.argv[1:]).run())
