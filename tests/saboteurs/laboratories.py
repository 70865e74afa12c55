"""The laboratories, by name: each is given an empty folder, and yields the breaches that it finds, a sentence each.

What each of them does follows from its own seeds, so that a breach comes again. On code that keeps the promise they
yield nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from . import (
    absence,
    balancing,
    collecting,
    crossing,
    crowds,
    damage,
    disks,
    flooding,
    identities,
    isolating,
    planning,
    proxying,
    reading,
    recovering,
    rolling,
    sealing,
    starting,
    succeeding,
    taking_turns,
)

__all__ = ["LABORATORIES", "Laboratory"]

Laboratory: TypeAlias = "Callable[[Path], Iterator[str]]"

LABORATORIES: Final[dict[str, Laboratory]] = {
    "power cuts": disks.power_cuts,
    "disk errors": disks.disk_errors,
    "errors and power cuts": disks.errors_and_cuts,
    "a disk that lies": disks.lies,
    "group commits": recovering.group_commits,
    "micro-batches": recovering.micro_batches,
    "damaged logs": damage.damaged_logs,
    "accepted losses": damage.accepted_losses,
    "identities": identities.identities,
    "sealing": sealing.sealing,
    "sealed files": sealing.sealed_files,
    "successors": succeeding.successors,
    "careless stores": succeeding.careless_stores,
    "collectors": collecting.collectors,
    "kills": collecting.kills,
    "full disks": collecting.full_disks,
    "long outages": collecting.long_outages,
    "ownership": collecting.ownership,
    "context variables": isolating.variables,
    "panics": isolating.panics,
    "shared streams": isolating.shared_streams,
    "closed transports": isolating.closed_transports,
    "queries": planning.queries,
    "absent collectors": absence.absent_collectors,
    "readers": reading.readers,
    "starts": starting.starts,
    "troubled links": crossing.troubled_links,
    "slow links": crossing.slow_links,
    "links that break again and again": crossing.worn_links,
    "outages": crossing.outages,
    "fair turns": taking_turns.fair_turns,
    "shares of time": taking_turns.shares,
    "floods": flooding.floods,
    "greed": flooding.greed,
    "crowds": crowds.crowds,
    "shared limits": crowds.shared_limits,
    "proxies": proxying.proxies,
    "neighbors": proxying.neighbors,
    "restarts": rolling.restarts,
    "cuts": rolling.cuts,
    "leased nodes": rolling.leased_nodes,
    "bad nodes": balancing.bad_nodes,
    "unequal leases": balancing.unequal_leases,
    "listening sockets": rolling.sockets,
    "certificates": rolling.certificates,
}
