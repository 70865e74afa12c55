"""A collector in a process of its own, to be killed: ``python -m tests.chaos.collecting URL ROUTE JOURNAL [LATE]``.

It runs on the loop that ``penstock collect`` uses. With LATE, its connection is made only after so many items have come
over it.
"""

from __future__ import annotations

import sys

import pytest

import penstock
from penstock.journal.collect import Collector
from tests.chaos.lateness import be_late

if __name__ == "__main__":
    url, route, journal, *late = sys.argv[1:]
    if late:
        be_late(pytest.MonkeyPatch(), int(late[0]))
    penstock.run(Collector(url, route, journal).run())
