"""A collector in a process of its own, to be killed: ``python -m tests.chaos.collecting URL ROUTE JOURNAL [LATE]``.

It runs on the loop that ``weirpool collect`` uses. With LATE, its connection is made only after so many items have come
over it.
"""

from __future__ import annotations

import sys

import pytest

import weirpool
from tests.chaos.lateness import be_late
from weirpool.journal.collect import Collector

if __name__ == "__main__":
    url, route, journal, *late = sys.argv[1:]
    if late:
        be_late(pytest.MonkeyPatch(), int(late[0]))
    weirpool.run(Collector(url, route, journal).run())
