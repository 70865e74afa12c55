"""Frames without a network: PAYLOADs of 128 bytes, in reads of 64 KiB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from .processes import Variant, Worker
from .report import Table
from .rounds import Runner, in_turns

OURS = Variant("Weirpool", "ours_codec")
PLAIN = Variant("Weirpool, plain build", "ours_codec", plain=True)
RSOCKET_PY = Variant("rsocket-py", "rsocket_py_codec")

NO_ADDRESS = "none"
# The title of each scenario, and the method of rsocket-py to compare with.
CODECS = {
    "decode": ("frames decoded, an object each", "decode"),
    "columns": ("frames decoded into Arrow's buffers", "decode"),
    "encode": ("frames encoded, one by one", "encode"),
}
SCENARIOS = tuple(CODECS)


def measure(scenarios: list[str], seconds: float, rounds: int) -> Iterator[Table]:
    """Run `scenarios` with both builds and the peer, and yield a table for each as it completes."""
    with ExitStack() as stack:
        workers = {one: stack.enter_context(Worker(one, NO_ADDRESS)) for one in (OURS, PLAIN, RSOCKET_PY)}
        for name in scenarios:
            title, theirs = CODECS[name]
            methods = {OURS: name, PLAIN: name, RSOCKET_PY: theirs}
            runners = [Runner(one, workers[one], None, method) for one, method in methods.items()]
            yield Table(name, title, "frames", in_turns(runners, seconds, rounds))
