"""``python -m tools.scale``: writes docs/explanation/scale.md from measured costs, and prices.

The measurements are CPU seconds and bytes on one machine of two shared cores; the benchmarks repeat them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "scale.md"
DAY = 86_400
MIB = 1024 * 1024

# CPU seconds for a million rows of 128 bytes.
COLLECT = 0.38
COLLECT_SLOW = 2.6
SEAL = 0.35
SPARK_BATCH = 0.46
SLOW_RATE = 1_000
"""Items a second and feed below which batches are small."""

# A streaming query: seconds of its driver's CPU, and bytes.
LOOK = 14e-6
"""For each source without new rows, each time Spark asks."""
PLAN = 35e-6
"""For each source, in each micro-batch to which few sources add rows: 5 of 10,000 did when this was measured."""
PLAN_CHANGED = 8 * PLAN
"""For each source that adds rows to a micro-batch; the ratio was measured with 300 and with 1,000 sources."""
OFFSET_BYTES = 86
"""For each source, in each of the two files of a micro-batch; Spark keeps a hundred of them."""
KEPT_BATCHES = 100

# Storage.
STORED = 0.25
"""Bytes of Parquet for a byte of items, all columns included: JSON of some 110 bytes with two random identifiers."""
STORED_QUOTES = 0.16
"""The same for JSON whose values are a symbol, a time and some prices."""
STORED_RANDOM = 1.03
"""The same for 128 random bytes, which cannot be compressed."""
SEAL_BYTES = 128 * MIB
SEAL_AGE = 600
SEAL_PUTS = 4
"""Requests at the price of a PUT to seal a file: two listings of manifests, the file, and the next manifest."""
SEAL_GETS = 2
"""Requests at the price of a GET to seal a file: the last manifest, and the file, which may be there already."""

# The loss of a machine, with durable = "remote".
BUNDLE_SECONDS = 0.25
BUNDLE_BYTES = 8 * MIB
"""A bundle is written when it has this size, or after this time."""
PATIENCE = 10.0
HEADERS_AT_ONCE = 16
BUNDLES_AT_ONCE = 8
REQUEST_SECONDS = 0.02
"""Until a store answers. An assumption, as is the next one."""
NETWORK = 300e6
"""Bytes a second that a machine gets from the store."""

# Amazon S3 Standard, us-east-1, in dollars.
PUT_PRICE = 5.0 / 1e6
GET_PRICE = 0.4 / 1e6
STORAGE_PRICE = 0.023 / 30 / 1e9
"""For a byte and a day."""


@dataclass(frozen=True)
class Deployment:
    """Some collectors and their feeds, all alike."""

    name: str
    collectors: int
    feeds: int
    """Of all collectors together."""
    items: float
    """Items a second of each feed."""
    size: int = 128
    """Bytes of an item."""

    @property
    def rows(self) -> float:
        """Rows a second of all feeds."""
        return self.feeds * self.items

    @property
    def bytes(self) -> float:
        """Bytes of items a second."""
        return self.rows * self.size

    @property
    def files(self) -> float:
        """Sealed files a day: a feed's file is full, or old enough."""
        return self.feeds * DAY / min(SEAL_AGE, SEAL_BYTES / (self.items * self.size))

    @property
    def requests(self) -> float:
        """Requests of the store a day, for sealing."""
        return self.files * (SEAL_PUTS + SEAL_GETS)

    @property
    def bundles(self) -> float:
        """Bundles a second of one collector."""
        return max(1 / BUNDLE_SECONDS, self.bytes / self.collectors / BUNDLE_BYTES)

    @property
    def unsealed(self) -> float:
        """Seconds until a row is in a sealed segment, at most: its segment is complete, and then sealed."""
        return 2 * min(SEAL_AGE, SEAL_BYTES / (self.items * self.size))

    @property
    def take_over(self) -> float:
        """Seconds from the loss of a machine until its successor goes on."""
        count, size = self.bundles * self.unsealed, self.bytes / self.collectors * self.unsealed
        headers = count * REQUEST_SECONDS / HEADERS_AT_ONCE
        return PATIENCE + headers + max(count * REQUEST_SECONDS / BUNDLES_AT_ONCE, size / NETWORK)

    @property
    def dollars(self) -> float:
        """What a day of rows costs when it is written: requests, and the first day of storage."""
        sealing = self.files * (SEAL_PUTS * PUT_PRICE + SEAL_GETS * GET_PRICE)
        return sealing + self.bytes * DAY * STORED * STORAGE_PRICE


DEPLOYMENTS = (
    Deployment("a laptop: 1 collector, 10 feeds", 1, 10, 1_000),
    Deployment("a team: 10 collectors, 1,000 feeds", 10, 1_000, 400),
    Deployment("100 TB a day: 20 collectors, 1,000 feeds", 20, 1_000, 9_042),
    Deployment("a fleet: 1,000 collectors, 10,000 feeds", 1_000, 10_000, 400),
)


def cost_rows(deployment: Deployment) -> list[str]:
    """Return the cells of a deployment in the table of costs."""
    each = COLLECT_SLOW if deployment.items < SLOW_RATE else COLLECT
    return [
        deployment.name,
        f"{deployment.rows:,.0f}",
        f"{deployment.bytes * DAY / 1e12:,.2f}",
        f"{deployment.rows / 1e6 * each:,.3f}",
        f"{deployment.rows / 1e6 * SEAL:,.3f}",
        f"{deployment.rows / 1e6 * SPARK_BATCH:,.3f}",
    ]


def storage_rows(deployment: Deployment) -> list[str]:
    """Return the cells of a deployment in the table of storage."""
    return [
        deployment.name,
        f"{deployment.files:,.0f}",
        f"{deployment.bytes * DAY / max(1.0, deployment.files) * STORED / 1e6:,.1f}",
        f"{deployment.bytes * DAY * STORED / 1e12:,.3f}",
        f"{deployment.requests:,.0f}",
        f"{deployment.dollars:,.2f}",
    ]


def query_rows(deployment: Deployment) -> list[str]:
    """Return the cells of a deployment in the table of a query over all feeds, with a micro-batch every ten seconds."""
    offset = deployment.feeds * OFFSET_BYTES
    return [
        deployment.name,
        f"{deployment.feeds * LOOK * 1e3:,.1f}",
        f"{deployment.feeds * PLAN * 1e3:,.1f}",
        f"{deployment.feeds * PLAN_CHANGED * 1e3:,.1f}",
        f"{offset / 1e3:,.1f}",
        f"{2 * KEPT_BATCHES * offset / 1e6:,.1f}",
    ]


def failover_rows(deployment: Deployment) -> list[str]:
    """Return the cells of a deployment in the table of the loss of a machine."""
    requests = deployment.collectors * deployment.bundles * DAY
    return [
        deployment.name,
        f"{requests:,.0f}",
        f"{requests * PUT_PRICE:,.2f}",
        f"{deployment.bundles * deployment.unsealed:,.0f}",
        f"{deployment.bytes / deployment.collectors * deployment.unsealed / 1e9:,.2f}",
        f"{deployment.take_over:,.0f}",
    ]


def table(head: list[str], rows: Iterator[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


HEAD = """\
# Scale

How far does it go, what does it cost, and what breaks first? This page is computed: run `python -m tools.scale` after
a change of its figures. Costs are measured on one machine with two shared cores (`python -m benchmarks collect-full
collect-100 steps`), prices are those of Amazon S3 Standard, and items have 128 bytes.

## Processors

Cores that are busy all day. Feeds below 1,000 items/s write small batches, which cost more; in return most of them
are idle.
"""
STORAGE = f"""
## Storage

With `storage` in the file of feeds, complete segments become Parquet files. A fast feed fills a file of 128 MiB of
Arrow, some 32 MiB of Parquet; a slow one has a file every ten minutes. The price is that of a day's rows on their
first day.

How much is stored depends on the items. The table is for {STORED:g} bytes of Parquet for each byte of items, which was
measured with JSON that has two random identifiers. JSON with a symbol, a time and some prices takes {STORED_QUOTES:g},
and random bytes take {STORED_RANDOM:g}.
"""
QUERY = """
## One query over all feeds

A streaming query has one offset with a position for each log. The times are those of the Python process beside
Spark's driver: when it looks for new rows (up to twice a second, if there are none), and when it plans a micro-batch
to which a few logs add rows (measured with 5 of 10,000), or all of them. A log that has new rows costs eight times as
much as one that has none. Spark keeps the offsets of a hundred micro-batches.
"""
FAILOVER = f"""
## The loss of a machine

With `durable = "remote"`, each collector writes a bundle for all its feeds every {BUNDLE_SECONDS:g} s, or when 8 MiB
have come together: these are the requests a day of all collectors, and their price. When a machine is lost, its
successor waits {PATIENCE:g} s, and then reads the bundles whose rows are in no sealed segment yet. The last column is
computed, not measured: for a store that answers in {REQUEST_SECONDS * 1e3:g} ms, and a network of
{NETWORK / 1e6:g} MB/s. Publishers keep their sessions meanwhile; `resume_timeout` is a minute by default. Slow feeds
are sealed after ten minutes here, so many bundles are left. With `seal_age = "1m"` there are a tenth of them.
"""
END = """
## What breaks first

1. **One query over thousands of logs.** Above some ten thousand logs, the checkpoint takes hundreds of megabytes,
   and planning some seconds if all of them have new rows. Split by `sourcePattern`: each query then has its own reader,
   offsets and lag.
2. **Small files.** Ten thousand slow feeds that are sealed every ten minutes make more than a million files a day.
   Raise `seal_age`: Spark reads the tail from Arrow segments meanwhile, so nobody waits for a file. Or collect feeds
   of one kind into one log by a service that merges them.
3. **One collector's cores.** A process has one event loop: a core. Use `--workers`, then more machines. Feeds are
   independent, so this has no limit of its own.
4. **One disk.** Feeds that share a process share one synced write for their small batches. Fast feeds sync their own:
   at 500 MB/s of a disk, a collector takes some 4 million rows a second.
5. **The budget.** While nobody reads, a feed of 1 MB/s fills 256 MiB in four minutes, and its publisher waits. With a
   store, what is sealed no longer counts. Otherwise set `budget` to the longest outage that readers may have.
6. **Take-overs.** What is not sealed is read by the successor. Lower `seal_age` and `seal_bytes`, or let more
   collectors have fewer feeds each, so that a session does not end before its stream goes on.
7. **The store's rate of requests.** S3 takes 3,500 writes a second for each prefix, and each log is a prefix.
"""


def page() -> str:
    """Return the page."""
    every = DEPLOYMENTS
    parts = [
        HEAD,
        table(
            ["deployment", "rows/s", "TB a day", "collecting", "sealing", "reading with Spark"], map(cost_rows, every)
        ),
        STORAGE,
        table(
            ["deployment", "files a day", "MB of a file", "TB a day, stored", "requests a day", "dollars"],
            map(storage_rows, every),
        ),
        QUERY,
        table(
            ["deployment", "to look, ms", "to plan a few, ms", "to plan all, ms", "offset, kB", "checkpoint, MB"],
            map(query_rows, every),
        ),
        FAILOVER,
        table(
            ["deployment", "requests a day", "dollars", "bundles to read", "GB to read", "seconds until it goes on"],
            map(failover_rows, every),
        ),
        END,
    ]
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
