"""Exports metrics and traces to Prometheus and OpenTelemetry. May import the top files and `aio`.

Only these files import the packages of their tools, which the extra `metrics` installs.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COUNTERS", "DURATIONS", "HELD", "INITIATORS", "OTHER", "PAYMENTS", "REFUSALS"]

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
    ("requests_refused", "{request}", "Requests of peers that were refused because of a limit or a missing lease"),
)

HELD: Final = (
    # The field of a snapshot of the ledger, the unit, and a description.
    ("held_bytes", "By", "Bytes received and not consumed, or sent and not confirmed"),
    ("peak_bytes", "By", "Maximum of the held bytes so far"),
    ("limit_bytes", "By", "Limit of the held bytes"),
    ("incomplete_bytes", "By", "Held bytes of incomplete frames and items"),
    ("retained_bytes", "By", "Held bytes of output that is not confirmed"),
    ("largest_identity_bytes", "By", "Bytes held for the client that holds most"),
    ("largest_connection_bytes", "By", "Bytes held for the connection that holds most"),
    ("identities", "{client}", "Clients with a connection"),
    ("paused_connections", "{connection}", "Connections that are not read because of a limit of held bytes"),
)

PAYMENTS: Final = "Releases of memory because of a limit of held bytes"

REFUSALS: Final = "Clients refused, by cause"

OTHER: Final = "_OTHER"
"""What the semantic conventions call a method that is not known."""

DURATIONS: Final = {True: "Duration of requests of this side", False: "Duration of requests of the peer"}
"""The descriptions of the histograms; the key is True for requests of this side."""

INITIATORS: Final = {True: "local", False: "remote"}
"""The label for the side that sent a request; the key is True for this side."""
