"""A process that receives rows and serves journals with few descriptors; its clients name who they are in their set-up.

Run as a program with a folder and a number of descriptors. It prints its URL, and after each line of input a line of
JSON: descriptors, files of names and stages, memory, and what the ledger holds.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
from pathlib import Path

import pyarrow as pa

import weirpool
from weirpool import Admitted, Receiver, Setup
from weirpool.journal import JournalWriter
from weirpool.ledger import LEDGER
from weirpool.serving import serve_journal

SOURCE = "s"
BATCHES, ROWS, ROW_BYTES = 16, 4_096, 1_024
"""A log of 64 MiB: each batch is larger than what a reader holds."""
MIB = 1 << 20
SETTINGS = weirpool.Settings(max_connection_bytes=16 * MIB, max_identity_bytes=32 * MIB, max_process_bytes=64 * MIB)


def write_log(folder: Path) -> None:
    """Write the log that is served."""
    data = pa.array([os.urandom(ROW_BYTES) for _ in range(ROWS)], pa.binary())
    batch = pa.RecordBatch.from_arrays([data, pa.nulls(ROWS, pa.binary())], ["data", "metadata"])
    with JournalWriter.open(folder, SOURCE, fsync=False, budget_bytes=1 << 30) as writer:
        for _ in range(BATCHES):
            writer.append(batch, SOURCE)


def report(folder: Path) -> dict[str, int]:
    """Return what this process holds."""
    # Errors keep what they concern alive until then.
    gc.collect()
    found = LEDGER.snapshot()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "names": len(list(folder.glob("log/_readers/*"))),
        "stages": len(list(folder.glob("in/*/_stages/*"))),
        "resident": int(status["VmRSS"].split()[0]) * 1024,
        "held": found.held_bytes,
        "peak": found.peak_bytes,
        "payments": found.payments,
    }


async def main(folder: Path) -> None:
    def accept(setup: Setup) -> Admitted:
        return Admitted(principal=setup.payload.data.decode())

    receiver = Receiver(folder / "in", ["in"])
    serve_journal(receiver.service, folder / "log")
    receiver.service.journal("feed", folder / "log")
    url = "rsocket+tcp://127.0.0.1:0"
    async with receiver, weirpool.serve(receiver.service, url, acceptor=accept, settings=SETTINGS) as server:
        print(server.urls[0], flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(report(folder)), flush=True)


if __name__ == "__main__":
    given = Path(sys.argv[1])
    write_log(given / "log")
    few = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))
    asyncio.run(main(given))
