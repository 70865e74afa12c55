"""Shows every frame of a connection as a line, for --debug."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from ..connection import Connection
from ..protocols import Dump, FrameReader, dump_of, spec_of
from ..settings import DEFAULT_SETTINGS, Settings
from ..tap import Tap
from ..texts import shown

__all__ = ["FrameDump"]

SENT: Final = "sent"
RCVD: Final = "rcvd"


class FrameDump(Tap):
    """Writes a line for each frame or message: its time, direction and content.

    Credentials, the data and metadata of the set-up, and the tokens and ids for resumption are hidden.

    Args:
        write: Called with each line, without a line break. Control characters are escaped.
        secrets: Also show secrets.
        messages: True if the client's transport carries messages.
        settings: Decide how a server interprets version 0.2.
        clock: Returns the time of day.

    """

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        secrets: bool = False,
        messages: bool = False,
        settings: Settings = DEFAULT_SETTINGS,
        clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._write = write
        self._options = messages, settings, secrets
        self._clock = clock
        self._known: dict[Connection, _Connection] = {}
        # The last frames of a connection may follow its end.
        self._last: tuple[Connection, _Connection] | None = None

    def opened(self, connection: Connection) -> None:
        """Write a line, and prepare to read the connection's frames."""
        self._known[connection] = _Connection(connection, *self._options)
        self._event(connection, "open", str(connection.address))

    def closed(self, connection: Connection, error: Exception | None) -> None:
        """Write the reason."""
        self._last = (connection, self._known.pop(connection))
        self._event(connection, "over", str(error or "closed by this side"))

    def resumed(self, connection: Connection) -> None:
        """Drop incomplete frames of the lost link."""
        self._known[connection].relink()
        self._event(connection, "open", "over another link")

    def refused(self, address: str, reason: str) -> None:
        """Write the reason."""
        self._line(f"{address} over {reason}")

    def received(self, connection: Connection, data: bytes) -> None:
        """Write the frames that are complete now."""
        self._show(connection, RCVD, data)

    def sent(self, connection: Connection, data: bytes) -> None:
        """Write the frames that are complete now."""
        self._show(connection, SENT, data)

    def _show(self, connection: Connection, way: str, data: bytes) -> None:
        known = self._known.get(connection)
        if known is None and self._last is not None and self._last[0] is connection:
            known = self._last[1]
        if known is not None:
            for text in known.lines(way, data):
                self._event(connection, way, text)

    def _event(self, connection: Connection, label: str, text: str) -> None:
        # A client has one connection at a time, so its address is omitted.
        where = "" if connection.is_client else f"{connection.address} "
        self._line(f"{where}{label} {text}")

    def _line(self, text: str) -> None:
        # Errors may contain text from the peer.
        safe = shown(text).replace("\n", " ")
        self._write(f"{self._clock().time().isoformat('milliseconds')} {safe}")


class _Connection:
    """The frame readers of one connection, one for each direction."""

    def __init__(self, connection: Connection, messages: bool, settings: Settings, secrets: bool) -> None:
        self._connection = connection
        self._messages = messages
        self._settings = settings
        self._secrets = secrets
        self._dump = dump_of(spec_of(connection.protocol).version)
        self._readers: dict[str, FrameReader] = {}
        self._head = b""
        if connection.is_client:
            self._begin(self._dump)

    def relink(self) -> None:
        """Drop incomplete frames."""
        if self._readers:
            self._begin(self._dump)

    def lines(self, way: str, data: bytes) -> list[str]:
        """Return a line for each frame that `data` completes."""
        if not self._readers:
            # The client sends first; its first bytes show the protocol.
            self._head += data
            found = self._dump.detected(self._head, self._settings)
            if found is None:
                return []
            self._begin(found)
            data, self._head = self._head, b""
        return self._readers[way].lines(data)

    def _begin(self, dump: Dump) -> None:
        self._dump = dump
        messages = self._messages and self._connection.is_client
        mime = self._connection.metadata_mime
        self._readers = {way: dump.reader(mime, messages, self._secrets) for way in (SENT, RCVD)}
