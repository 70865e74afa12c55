"""Every frame of a connection as a line, in and out: what --debug shows."""

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
    """Writes a line for each frame: when, which way, and what it says.

    A frame is also a message of River, or one of reactive-streams-io. Credentials, what a client says at set-up, and
    the tokens and ids by which sessions are resumed are hidden.

    Args:
        write: Gets each line, without its end; nothing in it can move a terminal's cursor.
        secrets: Show what is secret, too.
        messages: The client's transport carries messages.
        settings: For what a server reads version 0.2 as.
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
        self._secrets = secrets
        self._messages = messages
        self._settings = settings
        self._clock = clock
        self._known: dict[Connection, _Connection] = {}
        # The last words of a connection come behind its end.
        self._last: tuple[Connection, _Connection] | None = None

    def opened(self, connection: Connection) -> None:
        """Get ready for its frames."""
        self._known[connection] = _Connection(connection, self._messages, self._settings, self._secrets)
        self._tell(connection, "open", str(connection.address))

    def closed(self, connection: Connection, error: Exception | None) -> None:
        """Tell why."""
        self._last = (connection, self._known.pop(connection))
        self._tell(connection, "over", str(error or "closed by this side"))

    def resumed(self, connection: Connection) -> None:
        """Forget frames of which the lost link had brought a part."""
        self._known[connection].relink()
        self._tell(connection, "open", "over another link")

    def refused(self, address: str, reason: str) -> None:
        """Tell why."""
        self._line(f"{address} over {reason}")

    def received(self, connection: Connection, data: bytes) -> None:
        """Show the frames that are whole now."""
        self._show(connection, RCVD, data)

    def sent(self, connection: Connection, data: bytes) -> None:
        """Show the frames that are whole now."""
        self._show(connection, SENT, data)

    def _show(self, connection: Connection, way: str, data: bytes) -> None:
        known = self._known.get(connection)
        if known is None and self._last is not None and self._last[0] is connection:
            known = self._last[1]
        if known is not None:
            for text in known.lines(way, data):
                self._tell(connection, way, text)

    def _tell(self, connection: Connection, what: str, text: str) -> None:
        # A client has one connection at a time.
        where = "" if connection.is_client else f"{connection.address} "
        self._line(f"{where}{what} {text}")

    def _line(self, text: str) -> None:
        # Errors have a peer's words in them.
        safe = shown(text).replace("\n", " ")
        self._write(f"{self._clock().time().isoformat('milliseconds')} {safe}")


class _Connection:
    """What is known of one connection: what it speaks, and how far each direction has come."""

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
        """Begin with whole frames again."""
        if self._readers:
            self._begin(self._dump)

    def lines(self, way: str, data: bytes) -> list[str]:
        """Return a line for each frame that is whole with `data`."""
        if not self._readers:
            # The first bytes are a client's: they tell what it speaks.
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
