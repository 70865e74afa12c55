"""Shared code of the Python clients: registers checks, runs them, and prints one JSON object."""

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
    "SLOW",
    "Check",
    "Place",
    "check",
    "expect",
    "numbers",
    "run_all",
]

MEGABYTES_20 = 20 * 1024 * 1024
"""More than fits into one frame, so that it must be fragmented."""
ANSWER_TIMEOUT = 10.0
"""Time limit of a small response, in seconds."""
CHECK_TIMEOUT = 30.0
"""Time limit of a check, in seconds."""
LEASE = "lease"
"""The check that needs a server that grants leases; it runs separately."""
SLOW = "river-slow"
LEASE_REQUESTS = 4
"""The number of requests in each lease, which the server grants every `LEASE_INTERVAL` seconds."""
LEASE_INTERVAL = 1.0
LEASE_CALLS = 10
"""The number of calls that a client makes under leases, which needs three leases."""
LEASE_SECONDS = 1.8
"""The minimum duration of these calls: two intervals, less the inaccuracy of clocks and timers."""


@dataclass(frozen=True)
class Place:
    """The address of a server.

    Args:
        transport: "tcp" or "ws".
        host: Its host.
        port: Its port.
        cut_port: The port of a relay that cuts connections to it.

    """

    transport: str
    host: str
    port: int
    cut_port: int

    def cut(self) -> Place:
        """Return the address of the relay that cuts connections to this server."""
        return replace(self, port=self.cut_port)


Check = Callable[[Place], Awaitable[None]]

_checks: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    """Register a check: a coroutine function that takes a `Place`, and raises an exception if it fails."""

    def register(function: Check) -> Check:
        _checks[name] = function
        return function

    return register


def expect(found: object, wanted: object, what: str) -> None:
    """Raise AssertionError with both values if `found` is not `wanted`."""
    if found != wanted:
        raise AssertionError(f"{what}: {str(found)[:80]} instead of {str(wanted)[:80]}")


def numbers(start: int, stop: int) -> list[bytes]:
    """Return the ASCII integers from `start` to `stop` - 1."""
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
    """Run the checks one after another against the server on the command line, and print the JSON object.

    With ``--lease`` only the check of leases runs, otherwise all others.

    Returns:
        The exit code: 0 if all checks are ok, otherwise 1.

    """
    transport, host, port, cut_port, *options = sys.argv[1:]
    place = Place(transport, host, int(port), int(cut_port))
    results = {name: await _result_of(run, place) for name, run in _checks.items() if (name == LEASE) == bool(options)}
    print(json.dumps({"peer": peer, "role": "client", "checks": results}), flush=True)
    return 0 if set(results.values()) == {"ok"} else 1
