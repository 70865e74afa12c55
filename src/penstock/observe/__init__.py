"""Exports metrics and traces to Prometheus and OpenTelemetry. May import the top files and `aio`.

Only these files import the packages of their tools, which the extra `metrics` installs.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COUNTERS", "INITIATORS"]

COUNTERS: Final = (
    # The field of a snapshot, the unit, and a description.
    ("connections_opened", "{connection}", "Connections established"),
    ("connections_closed", "{connection}", "Connections closed"),
    ("connections_failed", "{connection}", "Connections that neither side ended in order"),
    ("connections_resumed", "{link}", "Links over which a connection was resumed"),
    ("connections_refused", "{link}", "Links closed before a connection was established"),
    ("limits_exceeded", "{connection}", "Connections ended because the peer exceeded a limit"),
    ("received_bytes", "By", "Bytes received over links"),
    ("sent_bytes", "By", "Bytes sent over links"),
    ("received_items", "{item}", "Items received, without requests"),
    ("sent_items", "{item}", "Items sent, without requests"),
    ("requests_queued", "{request}", "Requests that had to wait before they were sent"),
    ("requests_repeated", "{request}", "Calls that were sent again because the peer had no place for them"),
)

INITIATORS: Final = {True: "local", False: "remote"}
"""The label for the side that sent a request; the key is True for this side."""
