"""A tap that records its calls."""

from __future__ import annotations

from typing import Any

from weirpool import Connection, Kind, Outcome, Tap


class Notes(Tap):
    """Attributes:
    told: The recorded calls, in order, each with its arguments but the connection; bytes are only in `bytes`.
    bytes: The received and the sent bytes.
    connections: The opened connections.
    """

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.bytes = {"received": b"", "sent": b""}
        self.connections: list[Connection] = []

    def of(self, *names: str) -> list[tuple[Any, ...]]:
        return [each for each in self.told if each[0] in names]

    def opened(self, connection: Connection) -> None:
        self.connections.append(connection)
        self.told.append(("opened",))

    def closed(self, connection: Connection, error: Exception | None) -> None:
        self.told.append(("closed", error))

    def resumed(self, connection: Connection) -> None:
        self.told.append(("resumed",))

    def refused(self, address: str, reason: str) -> None:
        self.told.append(("refused", address, reason))

    def received(self, connection: Connection, data: bytes) -> None:
        self.bytes["received"] += data

    def sent(self, connection: Connection, data: bytes) -> None:
        self.bytes["sent"] += data

    def stream_opened(self, connection: Connection, kind: Kind, ours: bool) -> None:
        self.told.append(("stream_opened", kind, ours))

    def stream_ended(self, connection: Connection, kind: Kind, ours: bool, outcome: Outcome) -> None:
        self.told.append(("stream_ended", kind, ours, outcome))

    def items_received(self, connection: Connection, count: int) -> None:
        self.told.append(("items_received", count))

    def items_sent(self, connection: Connection, count: int) -> None:
        self.told.append(("items_sent", count))
