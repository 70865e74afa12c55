"""What the Python clients share: a register of checks, and the run that prints one JSON object."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

__all__ = [
    "ANSWER_TIMEOUT",
    "CHECK_TIMEOUT",
    "LEASE",
    "LEASE_CALLS",
    "LEASE_INTERVAL",
    "LEASE_REQUESTS",
    "LEASE_SECONDS",
    "MEGABYTES_20",
    "Check",
    "Place",
    "check",
    "expect",
    "numbers",
    "run_all",
]

MEGABYTES_20 = 20 * 1024 * 1024
"""More than one frame can hold, so that it must travel in fragments."""
ANSWER_TIMEOUT = 10.0
"""Seconds in which a small answer must come."""
CHECK_TIMEOUT = 30.0
"""Seconds that a whole check may take."""
LEASE = "lease"
"""The check that needs a server that grants leases, and is made alone."""
LEASE_REQUESTS = 4
"""How many requests a server that grants leases gives leave for, every `LEASE_INTERVAL` seconds anew."""
LEASE_INTERVAL = 1.0
LEASE_CALLS = 10
"""How many calls a client makes under leases: three leases' worth."""
LEASE_SECONDS = 1.8
"""How long these must take: two intervals, less what clocks and timers are apart."""


@dataclass(frozen=True)
class Place:
    """Where a server listens.

    Args:
        transport: "tcp" or "ws".
        host: Its address.
        port: Its port.
        cut_port: The port at which connections to it do not last.

    """

    transport: str
    host: str
    port: int
    cut_port: int

    def cut(self) -> Place:
        """Return the same server where connections do not last."""
        return replace(self, port=self.cut_port)


Check = Callable[[Place], Awaitable[None]]

_checks: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    """Register a check: it is told where the server is, and raises when something is not as it must be."""

    def register(function: Check) -> Check:
        _checks[name] = function
        return function

    return register


def expect(found: object, wanted: object, what: str) -> None:
    """Raise AssertionError, which tells both, where `found` is not `wanted`."""
    if found != wanted:
        raise AssertionError(f"{what}: {str(found)[:80]} instead of {str(wanted)[:80]}")


def numbers(start: int, stop: int) -> list[bytes]:
    """Return the ASCII integers from `start` up to but without `stop`."""
    return [b"%d" % number for number in range(start, stop)]


async def _result_of(run: Check, place: Place) -> str:
    try:
        await asyncio.wait_for(run(place), CHECK_TIMEOUT)
    except TimeoutError:
        return f"not done within {CHECK_TIMEOUT:.0f} s"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "ok"


async def run_all(peer: str) -> int:
    """Run the checks, one after another, against the place that the command line names; print the JSON object.

    With ``--lease`` that is the one check of leases, else all others.

    Returns:
        The exit code: 0 when all are ok, else 1.

    """
    transport, host, port, cut_port, *options = sys.argv[1:]
    place = Place(transport, host, int(port), int(cut_port))
    results = {name: await _result_of(run, place) for name, run in _checks.items() if (name == LEASE) == bool(options)}
    print(json.dumps({"peer": peer, "role": "client", "checks": results}), flush=True)
    return 0 if set(results.values()) == {"ok"} else 1
